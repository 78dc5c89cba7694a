-- GPU time of the traces of a label by op.
--
-- grain:   one row per (label, op)
-- reads:   op_summary, traces
-- columns:
--   op            VARCHAR  -    op; a launch call where no op was recorded; else `(no op)`
--   category      VARCHAR  -    its category
--   label         VARCHAR  -    name of the job
--   gpu_time_ns   BIGINT   ns   union of the activities that its calls launched, per call, summed
--   share_pct     DOUBLE   pct  share of the GPU time of the label
--   count         BIGINT   -    calls that launched GPU work
--   kernel_count  BIGINT   -    GPU activities
--   traces        BIGINT   -    traces that have it
SELECT
    times.name AS op,
    min(times.category) AS category,
    traces.label,
    CAST(sum(times.direct_kernel_time_ns) AS BIGINT) AS gpu_time_ns,
    100.0::DOUBLE * sum(times.direct_kernel_time_ns)
        / nullif(sum(sum(times.direct_kernel_time_ns)) OVER (PARTITION BY traces.label), 0)
        AS share_pct,
    CAST(sum(times.count) AS BIGINT) AS count,
    CAST(sum(times.kernel_count) AS BIGINT) AS kernel_count,
    count(DISTINCT traces.trace_id) AS traces
FROM op_summary AS times
JOIN traces ON traces.trace_id = times.trace_id
WHERE $label IS NULL
    OR traces.label = $label
GROUP BY traces.label, times.name
ORDER BY gpu_time_ns DESC, op, traces.label;
