-- GPU time of a trace by op and the inputs of its calls.
--
-- grain:   one row per (op, signature_id)
-- reads:   op_args_summary
-- columns:
--   op              VARCHAR  -    op; a launch call where no op was recorded; else `(no op)`
--   category        VARCHAR  -    its category
--   shapes          VARCHAR  -    shape per input
--   types           VARCHAR  -    type per input
--   gpu_time_ns     BIGINT   ns   union of the activities that its calls launched, per call, summed
--   share_pct       DOUBLE   pct  share of the trace's GPU time
--   cumulative_pct  DOUBLE   pct  share of this row and those before it
--   count           BIGINT   -    calls that launched GPU work
--   kernel_count    BIGINT   -    GPU activities
--   mean_ns         DOUBLE   ns   mean of a call
--   median_ns       DOUBLE   ns   median of a call
--   min_ns          BIGINT   ns   shortest call
--   max_ns          BIGINT   ns   longest call
--   std_ns          DOUBLE   ns   sample standard deviation
--   host_time_ns    BIGINT   ns   host time of the calls
--   values          VARCHAR  -    value per input that is no tensor
--   signature_id    VARCHAR  -    its inputs, as in signatures; NULL if none recorded
SELECT
    name AS op,
    category,
    input_dims AS shapes,
    input_types AS types,
    direct_kernel_time_ns AS gpu_time_ns,
    pct AS share_pct,
    cumulative_pct,
    count,
    kernel_count,
    mean_ns,
    median_ns,
    min_ns,
    max_ns,
    std_ns,
    host_time_ns,
    left(concrete_inputs, 400) AS values,
    CAST(signature_id AS VARCHAR) AS signature_id
FROM op_args_summary
WHERE trace_id = $trace_id
ORDER BY direct_kernel_time_ns DESC, name, op_args_summary.signature_id;
