-- GPU time of a trace by kernel.
--
-- grain:   one row per (name, kind)
-- reads:   kernel_summary
-- columns:
--   kernel          VARCHAR  -    name without return type, namespaces, template and call arguments
--   kind            VARCHAR  -    compute, comm, memcpy or memset
--   gpu_time_ns     BIGINT   ns   durations, summed
--   share_pct       DOUBLE   pct  share of all durations of the trace
--   cumulative_pct  DOUBLE   pct  share of this row and those before it
--   count           BIGINT   -    launches
--   mean_ns         DOUBLE   ns   mean duration
--   median_ns       DOUBLE   ns   median duration
--   min_ns          BIGINT   ns   shortest
--   max_ns          BIGINT   ns   longest
--   name            VARCHAR  -    name as it stands in the trace
SELECT
    short_name AS kernel,
    kind,
    time_ns AS gpu_time_ns,
    pct AS share_pct,
    cumulative_pct,
    count,
    mean_ns,
    median_ns,
    min_ns,
    max_ns,
    name
FROM kernel_summary
WHERE trace_id = $trace_id
ORDER BY time_ns DESC, name, kind;
