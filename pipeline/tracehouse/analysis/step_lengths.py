"""The sums of the step that each op call is in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import Integers, Ints, read_integers
from tracehouse.formulas.step_sums import Sums

_NAMES = {"t_sq": "tokens"}  # of columns of `steps` that are named otherwise
_STEPS = 1 << 42  # more than a trace has


class StepLengths:
    """The table `steps`, to look up by trace and step."""

    def __init__(self, steps: pa.Table, trace: Ints) -> None:
        """Take the steps; trace (n,): a number for the trace of each."""
        keys = trace * _STEPS + read_integers(steps, "step_id").values
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._steps = steps

    def rows(self, trace: Ints, step: Integers) -> Ints:
        """Return the row of `steps` of each call (n,), -1 where it is in none of them."""
        if not len(self._keys):
            return np.full(len(trace), -1, dtype=np.int64)
        wanted = np.where(step.known, trace * _STEPS + step.values, -1)
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[place] == wanted, self._order[place], -1)

    def sums(self, rows: Ints) -> Sums:
        """Return the sums of rows of `steps`, NaN where a row is -1 or a value is NULL."""
        return Sums(*(self._column(_NAMES.get(name, name), rows) for name in Sums._fields))

    def _column(self, name: str, rows: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        values = self._steps[name].cast(pa.float64(), safe=False).to_numpy()  # NULL becomes NaN
        if not len(values):
            return np.full(len(rows), np.nan)
        found = values[rows]
        found[rows < 0] = np.nan
        return np.asarray(found)
