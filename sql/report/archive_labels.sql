-- Traces by label: how many, and where their GPU time went.
--
-- grain:   one row per (label)
-- reads:   checks, coverage, roofline_categories, trace_timeline, traces
-- columns:
--   label              VARCHAR  -    name of the job
--   traces             BIGINT   -    traces
--   rejected           BIGINT   -    of these, nothing is usable
--   failing            BIGINT   -    of these, fail a check
--   kernels            BIGINT   -    GPU kernels
--   total_ns           BIGINT   ns   first start to last end on the GPU, summed over traces
--   busy_pct           DOUBLE   pct  time with any GPU activity, of the total
--   computation_ns     BIGINT   ns   time with compute or memset activity
--   exposed_comm_ns    BIGINT   ns   time with communication and no computation
--   exposed_memcpy_ns  BIGINT   ns   time with a copy and neither
--   idle_ns            BIGINT   ns   time without any
--   modelled_pct       DOUBLE   pct  time of calls of known work, of that of recorded ops
--   roofline_pct       DOUBLE   pct  least time on the device of the time, where both are known
--   analysed_at        VARCHAR  -    when the last of them was analysed, in UTC
-- notes:
--   A trace without a label has the label NULL.
SELECT
    traces.label,
    count(*) AS traces,
    count(*) FILTER (WHERE traces.status = 'rejected') AS rejected,
    count(failed.trace_id) AS failing,
    CAST(sum(traces.kernels) AS BIGINT) AS kernels,
    CAST(sum(timeline.total_ns) AS BIGINT) AS total_ns,
    100.0::DOUBLE * sum(timeline.busy_ns) / nullif(sum(timeline.total_ns), 0) AS busy_pct,
    CAST(sum(timeline.computation_ns) AS BIGINT) AS computation_ns,
    CAST(sum(timeline.exposed_comm_ns) AS BIGINT) AS exposed_comm_ns,
    CAST(sum(timeline.exposed_memcpy_ns) AS BIGINT) AS exposed_memcpy_ns,
    CAST(sum(timeline.idle_ns) AS BIGINT) AS idle_ns,
    100.0::DOUBLE * sum(coverage.modelled_ns) / nullif(sum(coverage.op_time_ns), 0)
        AS modelled_pct,
    100.0::DOUBLE * sum(limits.roofline_ns) / nullif(sum(limits.limited_ns), 0) AS roofline_pct,
    strftime(max(traces.analysed_at) AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS analysed_at
FROM traces
LEFT JOIN trace_timeline AS timeline
    ON timeline.trace_id = traces.trace_id
    AND traces.gpu_events > 0
LEFT JOIN coverage ON coverage.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        sum(limited_ns) AS limited_ns,
        sum(roofline_ns) AS roofline_ns
    FROM roofline_categories
    GROUP BY trace_id
) AS limits ON limits.trace_id = traces.trace_id
LEFT JOIN (
    SELECT DISTINCT trace_id
    FROM checks
    WHERE NOT ok
) AS failed ON failed.trace_id = traces.trace_id
WHERE $label IS NULL
    OR traces.label = $label
GROUP BY traces.label
ORDER BY traces.label NULLS LAST;
