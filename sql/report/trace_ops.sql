-- GPU time of a trace by op.
--
-- grain:   one row per (op, category)
-- reads:   op_summary
-- columns:
--   op              VARCHAR  -    op; a launch call where no op was recorded; else `(no op)`
--   category        VARCHAR  -    its category
--   gpu_time_ns     BIGINT   ns   union of the activities that its calls launched, per call, summed
--   share_pct       DOUBLE   pct  share of the trace's GPU time
--   cumulative_pct  DOUBLE   pct  share of this row and those before it
--   count           BIGINT   -    calls that launched GPU work
--   kernel_count    BIGINT   -    GPU activities
--   mean_ns         DOUBLE   ns   mean of a call
--   median_ns       DOUBLE   ns   median of a call
--   min_ns          BIGINT   ns   shortest call
--   max_ns          BIGINT   ns   longest call
--   host_time_ns    BIGINT   ns   host time of the calls
SELECT
    name AS op,
    category,
    direct_kernel_time_ns AS gpu_time_ns,
    pct AS share_pct,
    cumulative_pct,
    count,
    kernel_count,
    mean_ns,
    median_ns,
    min_ns,
    max_ns,
    host_time_ns
FROM op_summary
WHERE trace_id = $trace_id
ORDER BY direct_kernel_time_ns DESC, name, category;
