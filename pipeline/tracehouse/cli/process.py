"""A command as a process of its own, which is to begin and to end quickly."""

from __future__ import annotations

import atexit
import gc
import os

from tracehouse.cli.main import main

# New objects after which the youngest are looked through for garbage. By default that is done
# hundreds of times while code is loaded, none of which is garbage.
_YOUNG = 20_000


def run() -> None:
    """Run the command that the arguments of the process name, and exit as it says."""
    # No routine here is one of BLAS, whose threads would spin for 0.1 s when numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    # Memory goes back as a whole: to look through what was loaded, twice, takes 0.1 s.
    atexit.register(gc.freeze)
    main(prog_name="tracehouse")
