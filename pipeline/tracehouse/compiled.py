"""The compiler of the routines: numba's `njit`, with a shorter way to code that is cached.

numba registers all that it can compile (0.2 s) before it loads a routine from its cache, although
machine code needs nothing of it. Here only what runs such code is made ready; numba does the rest
by itself once it has to compile.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


class _Cache(FunctionCache):  # type: ignore[misc]  # numba has no types
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load one compiled signature of a routine, None if it is not cached."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def njit(function: Any) -> Any:
    """Compile a function when it is first called, keep the code on disk, and release the GIL.

    With NUMBA_DISABLE_JIT it stays Python.
    """
    routine = numba.njit(nogil=True)(function)
    if routine is not function:
        routine._cache = _Cache(function)
    return routine
