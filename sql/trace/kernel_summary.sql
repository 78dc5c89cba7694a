-- GPU time by kernel name.
--
-- grain:   one row per (trace_id, name, kind)
-- reads:   kernels
-- columns:
--   trace_id        VARCHAR  -    trace the row belongs to
--   name            VARCHAR  -    name of the kernel, copy or fill, as it stands in the trace
--   kind            VARCHAR  -    compute, comm, memcpy or memset
--   count           BIGINT   -    GPU activities of this name
--   time_ns         BIGINT   ns   their durations, summed
--   short_name      VARCHAR  -    name without return type, namespaces, template and call arguments
--   mean_ns         DOUBLE   ns   mean duration
--   median_ns       DOUBLE   ns   median duration
--   min_ns          BIGINT   ns   shortest duration
--   max_ns          BIGINT   ns   longest duration
--   std_ns          DOUBLE   ns   sample standard deviation, to 0.001; NULL for a single activity
--   pct             DOUBLE   pct  share of the trace's time_ns; NULL if none
--   cumulative_pct  DOUBLE   pct  pct of this row and those before it, longest time first
-- notes:
--   A sum, not a union: activities that overlap count in full. Unknown durations are in `count`
--   only.
CREATE OR REPLACE VIEW kernel_summary AS
WITH
    grouped AS (
        SELECT
            trace_id,
            name,
            kind,
            min(short_name) AS short_name,
            count(*) AS count,
            TRY_CAST(sum(dur_ns) AS BIGINT) AS time_ns,
            avg(dur_ns) AS mean_ns,
            median(dur_ns) AS median_ns,
            min(dur_ns) AS min_ns,
            max(dur_ns) AS max_ns,
            round(stddev_samp(dur_ns), 3) AS std_ns
        FROM kernels
        GROUP BY trace_id, name, kind
    ),
    ranked AS (
        SELECT
            trace_id,
            name,
            kind,
            short_name,
            count,
            time_ns,
            mean_ns,
            median_ns,
            min_ns,
            max_ns,
            std_ns,
            sum(time_ns) OVER (PARTITION BY trace_id) AS trace_time_ns,
            sum(time_ns) OVER (
                PARTITION BY trace_id
                ORDER BY time_ns DESC NULLS LAST, name, kind
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS cumulative_time_ns
        FROM grouped
    )
SELECT
    trace_id,
    name,
    kind,
    count,
    time_ns,
    short_name,
    mean_ns,
    median_ns,
    min_ns,
    max_ns,
    std_ns,
    100.0::DOUBLE * time_ns / nullif(trace_time_ns, 0) AS pct,
    100.0::DOUBLE * cumulative_time_ns / nullif(trace_time_ns, 0) AS cumulative_pct
FROM ranked;
