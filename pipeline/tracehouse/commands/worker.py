"""What the server of worker processes loads, before any of them is forked from it."""

from __future__ import annotations

import gc
import os
from importlib import import_module

# No routine here is one of BLAS, whose threads would spin for 0.1 s when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import_module("tracehouse.commands.part")
gc.freeze()  # code is no garbage: nobody need look through it, and its memory stays shared
