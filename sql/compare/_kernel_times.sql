-- GPU time of traces by op and kernel, each beside the kernel of the first side that it stands for.
--
-- grain:   one row per (side, trace_id, op, has_op, shapes, types, base_kernel, kernel, kind)
-- reads:   compared_activities, _kernel_pairs
-- columns:
--   side         INTEGER  -   the side, from 0
--   trace_id     VARCHAR  -   the trace
--   op           VARCHAR  -   op that launched it; else launch call; else `(no op)`
--   has_op       BOOLEAN  -   whether it is an op
--   shapes       VARCHAR  -   shapes of the op's inputs; NULL if unknown
--   types        VARCHAR  -   types of the op's inputs; NULL if unknown
--   base_kernel  VARCHAR  -   name of the kernel in the first side; its own without one
--   kernel       VARCHAR  -   its name; NULL if nameless
--   kind         VARCHAR  -   compute, comm, memcpy or memset
--   short_name   VARCHAR  -   its name without return type, namespaces and arguments
--   activities   BIGINT   -   GPU activities
--   untimed      BIGINT   -   of these, activities of unknown duration
--   time_ns      BIGINT   ns  known durations, summed
CREATE OR REPLACE VIEW _kernel_times AS
SELECT
    own.side,
    own.trace_id,
    own.op,
    own.has_op,
    own.shapes,
    own.types,
    CASE WHEN pair.side IS NULL THEN own.kernel ELSE pair.base_kernel END AS base_kernel,
    own.kernel,
    own.kind,
    min(own.short_name) AS short_name,
    CAST(sum(own.activities) AS BIGINT) AS activities,
    CAST(sum(own.untimed) AS BIGINT) AS untimed,
    CAST(sum(own.time_ns) AS BIGINT) AS time_ns
FROM compared_activities AS own
LEFT JOIN _kernel_pairs AS pair
    ON pair.side = own.side
    AND pair.op = own.op
    AND pair.has_op = own.has_op
    AND pair.shapes IS NOT DISTINCT FROM own.shapes
    AND pair.types IS NOT DISTINCT FROM own.types
    AND pair.kernel IS NOT DISTINCT FROM own.kernel
    AND pair.kind IS NOT DISTINCT FROM own.kind
GROUP BY
    own.side,
    own.trace_id,
    own.op,
    own.has_op,
    own.shapes,
    own.types,
    CASE WHEN pair.side IS NULL THEN own.kernel ELSE pair.base_kernel END,
    own.kernel,
    own.kind;
