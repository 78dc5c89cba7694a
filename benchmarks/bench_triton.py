"""Time the model of compiled kernels over a million launches on one core.

    python benchmarks/bench_triton.py [LAUNCHES]

As an archive has them: launches of a few thousand distinct names, inputs and grids, each with one
kernel on the GPU. Prints CPU seconds of making the table `triton_kernels`; compiling is not
counted.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

from tracehouse.analysis.settings import DEFAULT
from tracehouse.analysis.triton_kernels import triton_kernels
from tracehouse.findings import Findings
from tracehouse.formulas.arch import chosen
from tracehouse.schema.tables import COMPILED_CALLS, KERNELS, OPS, SIGNATURES, Table

DISTINCT = 4_000
BF16 = "c10::BFloat16"
RUNS = 3
NAMES = (
    "triton_poi_fused__unsafe_view_mul_silu",
    "triton_red_fused_add_mean_mul_pow_rsqrt",
    "triton_per_fused__softmax_add_masked_fill",
    "triton_poi_fused__to_copy_add_addmm_cat_mul_view",
)


def table_of(table: Table, size: int, **columns: object) -> pa.Table:
    """Make a table; a column that is not given is NULL."""
    arrays = [
        pa.nulls(size, column.type) if column.name not in columns else columns[column.name]
        for column in table.columns
    ]
    return pa.table(arrays, schema=table.schema)


def words(codes: np.ndarray, values: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(values))


def linked_tables(launches: int) -> dict[str, pa.Table]:
    """Make what `link` gives of so many launches, of DISTINCT kinds."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, DISTINCT, launches)
    sizes = rng.integers(1, 1 << 14, (DISTINCT, 2)).tolist()
    is_pointwise = [number % len(NAMES) in (0, 3) for number in range(DISTINCT)]
    scalars = [
        [str(x * r)] if flat else [str(x), str(r)]
        for (x, r), flat in zip(sizes, is_pointwise, strict=True)
    ]
    ids = list(range(DISTINCT))
    event = np.arange(launches, dtype=np.int64)
    trace = words(np.zeros(launches), ["t"])
    names = [f"{NAMES[number % len(NAMES)]}_{number}" for number in ids]
    blocks = ["XBLOCK=1024" if flat else "XBLOCK=2,R0_BLOCK=2048" for flat in is_pointwise]
    grids = [
        f"[{-(-(x * r) // 1024) if flat else -(-x // 2)},1,1]"
        for (x, r), flat in zip(sizes, is_pointwise, strict=True)
    ]
    return {
        "signatures": table_of(
            SIGNATURES,
            DISTINCT,
            trace_id=words(np.zeros(DISTINCT), ["t"]),
            signature_id=pa.array(ids),
            input_dims=pa.array(
                [[[x, r], [x, r], *[[]] * len(s)] for (x, r), s in zip(sizes, scalars, strict=True)]
            ),
            input_types=pa.array([[BF16, BF16, *["Scalar"] * len(s)] for s in scalars]),
            concrete_inputs=pa.array([["", "", *s] for s in scalars]),
            raw=pa.array([""] * DISTINCT),
        ),
        "ops": table_of(
            OPS,
            launches,
            trace_id=trace,
            event_id=event,
            name=words(kind, names),
            signature_id=pa.array(kind),
            kernel_count=np.ones(launches, np.int64),
            kernel_time_ns=rng.integers(1_000, 100_000, launches),
        ),
        "kernels": table_of(
            KERNELS,
            launches,
            trace_id=trace,
            event_id=event + launches,
            category=words(np.zeros(launches), ["kernel"]),
            kind=words(np.zeros(launches), ["compute"]),
            name=words(kind, names),
            op_id=pa.array(event),
        ),
        "compiled_calls": table_of(
            COMPILED_CALLS,
            launches,
            trace_id=trace,
            event_id=event,
            kernel_name=words(kind, names),
            kernel_hash=words(kind, [f"c{number:051d}" for number in ids]),
            kernel_kwargs=words(kind, blocks),
            num_warps=words(np.zeros(launches), ["4"]),
            num_stages=words(np.zeros(launches), ["1"]),
            gpu_grid=words(kind, grids),
        ),
    }


def measured(launches: int) -> float:
    """Least CPU seconds of a few runs; the first one compiles and is not counted."""
    linked = linked_tables(launches)
    arch = chosen("H100-SXM")

    def run() -> float:
        before = time.process_time()
        made = triton_kernels(linked, arch, DEFAULT, findings=Findings())
        seconds = time.process_time() - before
        if made["flops"].null_count or made["bytes"].null_count:
            raise SystemExit("some launches have no work")
        return seconds

    run()
    return min(run() for _ in range(RUNS))


def main() -> None:
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{measured(launches):.2f} s of CPU for {launches:,} launches")


if __name__ == "__main__":
    main()
