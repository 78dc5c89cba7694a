"""The work of template kernels: products whose op's formula fits the tensors of the launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import Ints
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.analysis.op_work import Called, Formulas, Results
from tracehouse.formulas.user import UserModel
from tracehouse.triton.kernel_work import BASES, SOURCES, UNITS, Basis, Source, Work
from tracehouse.triton.operands import known_dtype

# Templates whose tensors are those of the op, in its order, and then the result.
_PRODUCTS = {"mm": 2, "bmm": 2, "addmm": 3, "baddbmm": 3}


class Templates:
    """The formulas of the ops that templates carry out; made when the first is met."""

    def __init__(self, signatures: pa.Table, rules: OpCategories) -> None:
        self._signatures = signatures
        self._rules = rules
        self._formulas: Formulas | None = None

    def take(self, work: Work, at: int, ops: tuple[str, ...], row: int) -> None:
        """Fill in the work of launch `at` of a template, if its one product fits its inputs.

        Args:
            work: of all launches.
            at: the launch.
            ops: what its name says that it fused.
            row: its row of `signatures`.
        """
        products = [op for op in ops if op in _PRODUCTS]
        if len(products) != 1 or row < 0:
            return
        dims = self._signatures["input_dims"][row].as_py() or []
        if not _fits(products[0], dims):
            return
        results = self._evaluated(f"aten::{products[0]}", np.array([row]))
        if np.isnan(results.flops[0]) or np.isnan(results.bytes[0]):
            return
        spec = results.specs[int(results.spec[0])]
        work.flops[at] = results.flops[0]
        work.bytes[at] = work.least[at] = results.bytes[0]
        work.partial[at] = len(ops) > 1  # what is fused to its end is not counted
        work.basis[at] = BASES.index(Basis.MODEL)
        work.source[at] = SOURCES.index(Source.MODEL)
        work.unit[at] = UNITS.index(spec.unit)
        work.dtype[at] = known_dtype(self._signatures["input_types"][row].as_py()[0])
        work.why[at] = -1

    def _evaluated(self, name: str, row: Ints) -> Results:
        if self._formulas is None:
            no_models: Mapping[str, UserModel] = {}
            self._formulas = Formulas(self._signatures, self._rules, no_models)
        return self._formulas.results(
            Called(np.zeros(1, np.int32), [name], row, np.full(1, np.nan))
        )


def _fits(op: str, dims: list[list[int] | None]) -> bool:
    """Whether the tensors are the operands of a product and its result, and nothing else."""
    tensors = [shape for shape in dims if shape]
    if len(tensors) != _PRODUCTS[op] + 1:
        return False
    *_, left, right, result = tensors
    return (
        len(left) == len(right) == len(result) >= 2
        and left[-1] == right[-2]
        and result[-2:] == [left[-2], right[-1]]
        and left[:-2] == right[:-2] == result[:-2]
    )
