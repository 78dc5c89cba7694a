"""Which annotations are steps."""

from __future__ import annotations

import re

import numpy as np

from tracehouse.analysis.columns import Ints
from tracehouse.analysis.frame import Frame
from tracehouse.vocab import Category

STEP_RULE = "ProfilerStep"
_STEP = re.compile(STEP_RULE + r"#\d+", re.ASCII)


def step_rows(frame: Frame) -> Ints:
    """Return the rows of the frame that are steps: annotations of the CPU side with a step's name.

    PyTorch 1.8 files them as ops. Their mirrors on the GPU are none: they cover only part of a
    step's work (field_cases F66).
    """
    rows = frame.rows(Category.USER_ANNOTATION, Category.CPU_OP)
    is_step = np.array([*(bool(_STEP.match(name)) for name in frame.name.values), False])
    steps: Ints = rows[is_step[frame.name.codes[rows]]]
    return steps
