-- Parts of each side beside the first side's: what differs, by how much, and what explains it.
--
-- grain:   one row per (level, name, shapes, types, kind, side)
-- reads:   compared_calls, _kernel_ops, _part_kernels, _side_parts
-- columns:
--   level              VARCHAR    -    what parts are: op, kernel, category or phase
--   side               INTEGER    -    the side, from 1; the base is side 0
--   place              BIGINT     -    1, 2 … within level and side: largest difference first
--   name               VARCHAR    -    op, kernel, category or phase; `(no op)`; NULL: nameless
--   shapes             VARCHAR    -    of an op: shapes of its inputs; NULL if unknown
--   types              VARCHAR    -    of an op: types of its inputs; NULL if unknown
--   kind               VARCHAR    -    of a kernel: compute, comm, memcpy or memset; else NULL
--   dtype              VARCHAR    -    of an op: type that its peak is taken of; NULL if unknown
--   category           VARCHAR    -    of an op: its category
--   status             VARCHAR    -    both; renamed, in both by another name; appeared; vanished
--   base_ns            BIGINT     ns   GPU time of the base; 0 if it has none
--   side_ns            BIGINT     ns   GPU time of the side; 0 if it has none
--   diff_ns            BIGINT     ns   side_ns - base_ns
--   diff_pct           DOUBLE     pct  diff_ns of base_ns; NULL if that is 0
--   explains_pct       DOUBLE     pct  diff_ns of the difference of the whole; NULL if that is 0
--   base_calls         DOUBLE     -    calls, activities or steps of the base; NULL if unknown
--   side_calls         DOUBLE     -    the same of the side
--   base_call_ns       DOUBLE     ns   GPU time of a call of the base; NULL without one
--   side_call_ns       DOUBLE     ns   GPU time of a call of the side; NULL without one
--   from_calls_ns      BIGINT     ns   diff_ns from more or fewer calls; NULL if calls are unknown
--   from_per_call_ns   BIGINT     ns   the rest, from slower or faster calls; NULL likewise
--   cause              VARCHAR    -    what explains most of diff_ns, see the notes; NULL: none
--   base_roofline_pct  DOUBLE     pct  least time on the device of the time taken; NULL if unknown
--   side_roofline_pct  DOUBLE     pct  the same of the side
--   roofline_diff_pct  DOUBLE     pct  side_roofline_pct - base_roofline_pct, in points
--   base_kernel        VARCHAR    -    of an op or kernel: its longest kernel in the base, in short
--   side_kernel        VARCHAR    -    the same in the side
--   base_kernels       VARCHAR[]  -    of an op or kernel: names in the base, longest time first
--   side_kernels       VARCHAR[]  -    the same in the side
--   ops                VARCHAR[]  -    of a kernel: ops that launch it, longest time first
--   base_median_ns     DOUBLE     ns   median over the traces of the base
--   base_mad_ns        DOUBLE     ns   median of the distances from it; NULL for a single trace
--   base_min_ns        DOUBLE     ns   least of the traces of the base
--   base_max_ns        DOUBLE     ns   greatest of the traces of the base
--   side_median_ns     DOUBLE     ns   median over the traces of the side
--   side_mad_ns        DOUBLE     ns   median of the distances from it; NULL for a single trace
--   side_min_ns        DOUBLE     ns   least of the traces of the side
--   side_max_ns        DOUBLE     ns   greatest of the traces of the side
--   is_apart           BOOLEAN    -    all traces above all of the base, or below; NULL if 1 in one
--   base_sum_ns        BIGINT     ns   GPU time of all traces of the base
--   side_sum_ns        BIGINT     ns   GPU time of all traces of the side
--   untimed            BIGINT     -    activities on both sides whose duration is not known
-- notes:
--   Times are sums of durations of GPU activities, per trace or per step: base_ns, side_ns and
--   diff_ns of a level and side add up to kernel_time of compare_totals, to the nanosecond. A
--   roofline_pct of an op is of all its calls, else NULL; of a category or phase it is of the calls
--   that have a roofline. Kernels have none. cause: appeared, vanished; more calls or fewer calls,
--   if they make up more than half of diff_ns; else slower or faster, per call.
CREATE OR REPLACE VIEW compare_parts AS
WITH
    op_words AS (
        SELECT
            op,
            shapes,
            types,
            min(category) AS category,
            min(dtype) AS dtype
        FROM compared_calls
        GROUP BY op, shapes, types
    ),
    measured AS (
        SELECT
            level,
            name,
            shapes,
            types,
            kind,
            side,
            mean_ns,
            sum_ns,
            activities + calls > 0 AS is_there,
            untimed,
            renamed,
            mean_calls,
            sum_ns / CAST(nullif(calls, 0) AS DOUBLE) AS call_ns,
            CASE
                WHEN level <> 'op' OR limited_calls = calls
                    THEN 100.0::DOUBLE * roofline_ns / nullif(limited_ns, 0)
            END AS roofline_pct,
            median_ns,
            mad_ns,
            min_ns,
            max_ns,
            sum(mean_ns) OVER (PARTITION BY level, side) AS whole_ns
        FROM _side_parts
    ),
    paired AS (
        SELECT
            base.level,
            base.name,
            base.shapes,
            base.types,
            base.kind,
            other.side,
            base.is_there AS is_in_base,
            other.is_there AS is_in_side,
            other.renamed,
            base.mean_ns AS base_ns,
            other.mean_ns AS side_ns,
            other.mean_ns - base.mean_ns AS diff_ns,
            other.whole_ns - base.whole_ns AS whole_diff_ns,
            base.mean_calls AS base_calls,
            other.mean_calls AS side_calls,
            base.call_ns AS base_call_ns,
            other.call_ns AS side_call_ns,
            base.roofline_pct AS base_roofline_pct,
            other.roofline_pct AS side_roofline_pct,
            base.median_ns AS base_median_ns,
            base.mad_ns AS base_mad_ns,
            base.min_ns AS base_min_ns,
            base.max_ns AS base_max_ns,
            other.median_ns AS side_median_ns,
            other.mad_ns AS side_mad_ns,
            other.min_ns AS side_min_ns,
            other.max_ns AS side_max_ns,
            base.sum_ns AS base_sum_ns,
            other.sum_ns AS side_sum_ns,
            base.untimed + other.untimed AS untimed
        FROM measured AS base
        JOIN measured AS other
            ON other.level = base.level
            AND other.name IS NOT DISTINCT FROM base.name
            AND other.shapes IS NOT DISTINCT FROM base.shapes
            AND other.types IS NOT DISTINCT FROM base.types
            AND other.kind IS NOT DISTINCT FROM base.kind
        WHERE base.side = 0
            AND other.side > 0
            AND (base.is_there OR other.is_there)
    ),
    explained AS (
        SELECT
            paired.*,
            CASE
                WHEN NOT is_in_base OR NOT is_in_side THEN diff_ns
                WHEN base_call_ns IS NOT NULL AND side_call_ns IS NOT NULL
                    THEN CAST(round((side_calls - base_calls) * base_call_ns) AS BIGINT)
            END AS from_calls_ns
        FROM paired
    )
SELECT
    explained.level,
    explained.side,
    row_number() OVER (
        PARTITION BY explained.level, explained.side
        ORDER BY
            abs(explained.diff_ns) DESC,
            explained.base_ns + explained.side_ns DESC,
            explained.name NULLS FIRST,
            explained.shapes NULLS FIRST,
            explained.types NULLS FIRST,
            explained.kind NULLS FIRST
    ) AS place,
    explained.name,
    explained.shapes,
    explained.types,
    explained.kind,
    op_words.dtype,
    op_words.category,
    CASE
        WHEN NOT explained.is_in_base THEN 'appeared'
        WHEN NOT explained.is_in_side THEN 'vanished'
        WHEN explained.renamed > 0 THEN 'renamed'
        ELSE 'both'
    END AS status,
    explained.base_ns,
    explained.side_ns,
    explained.diff_ns,
    100.0::DOUBLE * explained.diff_ns / nullif(explained.base_ns, 0) AS diff_pct,
    100.0::DOUBLE * explained.diff_ns / nullif(explained.whole_diff_ns, 0) AS explains_pct,
    explained.base_calls,
    explained.side_calls,
    explained.base_call_ns,
    explained.side_call_ns,
    explained.from_calls_ns,
    explained.diff_ns - explained.from_calls_ns AS from_per_call_ns,
    CASE
        WHEN explained.diff_ns = 0 THEN NULL
        WHEN NOT explained.is_in_base THEN 'appeared'
        WHEN NOT explained.is_in_side THEN 'vanished'
        WHEN 2 * abs(explained.from_calls_ns) > abs(explained.diff_ns)
            AND sign(explained.from_calls_ns) = sign(explained.diff_ns)
            THEN CASE WHEN explained.diff_ns > 0 THEN 'more calls' ELSE 'fewer calls' END
        WHEN explained.from_calls_ns IS NOT NULL
            THEN CASE WHEN explained.diff_ns > 0 THEN 'slower' ELSE 'faster' END
    END AS cause,
    explained.base_roofline_pct,
    explained.side_roofline_pct,
    explained.side_roofline_pct - explained.base_roofline_pct AS roofline_diff_pct,
    in_base.short_name AS base_kernel,
    in_side.short_name AS side_kernel,
    in_base.kernels AS base_kernels,
    in_side.kernels AS side_kernels,
    _kernel_ops.ops,
    explained.base_median_ns,
    explained.base_mad_ns,
    explained.base_min_ns,
    explained.base_max_ns,
    explained.side_median_ns,
    explained.side_mad_ns,
    explained.side_min_ns,
    explained.side_max_ns,
    CASE
        WHEN explained.base_mad_ns IS NOT NULL AND explained.side_mad_ns IS NOT NULL
            THEN explained.side_min_ns > explained.base_max_ns
            OR explained.side_max_ns < explained.base_min_ns
    END AS is_apart,
    explained.base_sum_ns,
    explained.side_sum_ns,
    explained.untimed
FROM explained
LEFT JOIN op_words
    ON explained.level = 'op'
    AND op_words.op = explained.name
    AND op_words.shapes IS NOT DISTINCT FROM explained.shapes
    AND op_words.types IS NOT DISTINCT FROM explained.types
LEFT JOIN _part_kernels AS in_base
    ON in_base.side = 0
    AND in_base.level = explained.level
    AND in_base.name IS NOT DISTINCT FROM explained.name
    AND in_base.shapes IS NOT DISTINCT FROM explained.shapes
    AND in_base.types IS NOT DISTINCT FROM explained.types
    AND in_base.kind IS NOT DISTINCT FROM explained.kind
LEFT JOIN _part_kernels AS in_side
    ON in_side.side = explained.side
    AND in_side.level = explained.level
    AND in_side.name IS NOT DISTINCT FROM explained.name
    AND in_side.shapes IS NOT DISTINCT FROM explained.shapes
    AND in_side.types IS NOT DISTINCT FROM explained.types
    AND in_side.kind IS NOT DISTINCT FROM explained.kind
LEFT JOIN _kernel_ops
    ON explained.level = 'kernel'
    AND _kernel_ops.base_kernel IS NOT DISTINCT FROM explained.name
    AND _kernel_ops.kind IS NOT DISTINCT FROM explained.kind;
