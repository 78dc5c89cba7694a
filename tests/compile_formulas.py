"""Compile the routines of all formulas into the cache, a module at a time on every core.

    python tests/compile_formulas.py

A test run does it first: otherwise its workers would each compile what they meet, side by side.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module

import numpy as np
from formula_cases import table

from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import read_inputs
from tracehouse.formulas.registry import MODULES


def compile_module(name: str) -> None:
    """Evaluate one call by each model of a module."""
    found, _ = table([{"dims": [[2, 3], [3, 4]], "types": ["float", "float"], "values": ["", ""]}])
    inputs = read_inputs(found)
    for model in import_module(f"tracehouse.formulas.{name}").MODELS:
        slots = np.array([list(model.slots.values())], dtype=np.int64)
        evaluate(model, inputs, np.array([0]), slots, np.array([np.nan]))


def main() -> None:
    compile_module(next(iter(MODULES)))  # what all share is compiled once
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_module, MODULES))


if __name__ == "__main__":
    main()
