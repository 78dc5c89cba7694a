-- GPU time by op: the nearest op call above each GPU activity.
--
-- grain:   one row per (trace_id, name)
-- reads:   _launcher_calls
-- columns:
--   trace_id               VARCHAR  -    trace the row belongs to
--   name                   VARCHAR  -    op; else launch call; else `(no op)`
--   category               VARCHAR  -    category of the op; `launch`; `(no op)`
--   count                  BIGINT   -    calls that launched GPU work; activities for `(no op)`
--   direct_kernel_time_ns  BIGINT   ns   union of the activities they launched, per call, summed
--   kernel_time_ns         BIGINT   ns   union of all activities below, per call, summed
--   kernel_count           BIGINT   -    GPU activities they launched directly
--   mean_ns                DOUBLE   ns   mean of direct_kernel_time_ns per call
--   median_ns              DOUBLE   ns   median of direct_kernel_time_ns per call
--   min_ns                 BIGINT   ns   smallest direct_kernel_time_ns of a call
--   max_ns                 BIGINT   ns   largest direct_kernel_time_ns of a call
--   std_ns                 DOUBLE   ns   sample standard deviation, to 0.001; NULL for one call
--   host_time_ns           BIGINT   ns   host time of the calls, summed; NULL if none is known
--   pct                    DOUBLE   pct  share of the trace's direct_kernel_time_ns; NULL if none
--   cumulative_pct         DOUBLE   pct  pct of this row and those before it, longest time first
-- notes:
--   Every GPU activity is in exactly one row. A launch call without an op stands for itself (for
--   instance hipGraphLaunch); activities with neither come under `(no op)`. Calls that a graph
--   replays, known by its capture, have no host time.
CREATE OR REPLACE VIEW op_summary AS
WITH
    grouped AS (
        SELECT
            trace_id,
            name,
            min(category) AS category,
            count(*) AS count,
            TRY_CAST(sum(kernel_count) AS BIGINT) AS kernel_count,
            TRY_CAST(sum(direct_kernel_time_ns) AS BIGINT) AS direct_kernel_time_ns,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(direct_kernel_time_ns) AS mean_ns,
            median(direct_kernel_time_ns) AS median_ns,
            min(direct_kernel_time_ns) AS min_ns,
            max(direct_kernel_time_ns) AS max_ns,
            round(stddev_samp(direct_kernel_time_ns), 3) AS std_ns,
            TRY_CAST(sum(host_time_ns) AS BIGINT) AS host_time_ns
        FROM _launcher_calls
        GROUP BY trace_id, name
    ),
    ranked AS (
        SELECT
            trace_id,
            name,
            category,
            count,
            kernel_count,
            direct_kernel_time_ns,
            kernel_time_ns,
            mean_ns,
            median_ns,
            min_ns,
            max_ns,
            std_ns,
            host_time_ns,
            sum(direct_kernel_time_ns) OVER (PARTITION BY trace_id) AS trace_time_ns,
            sum(direct_kernel_time_ns) OVER (
                PARTITION BY trace_id
                ORDER BY direct_kernel_time_ns DESC NULLS LAST, name
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS cumulative_time_ns
        FROM grouped
    )
SELECT
    trace_id,
    name,
    category,
    count,
    direct_kernel_time_ns,
    kernel_time_ns,
    kernel_count,
    mean_ns,
    median_ns,
    min_ns,
    max_ns,
    std_ns,
    host_time_ns,
    100.0::DOUBLE * direct_kernel_time_ns / nullif(trace_time_ns, 0) AS pct,
    100.0::DOUBLE * cumulative_time_ns / nullif(trace_time_ns, 0) AS cumulative_pct
FROM ranked;
