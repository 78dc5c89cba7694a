-- What stands at the top of the report of a warehouse, or of one label.
--
-- grain:   one row per (traces)
-- reads:   checks, coverage, roofline_categories, trace_timeline, traces
-- columns:
--   traces        BIGINT   -    traces
--   labels        BIGINT   -    labels, each once
--   rejected      BIGINT   -    traces of which nothing is usable
--   damaged       BIGINT   -    traces that were repaired or are partial
--   events        BIGINT   -    events read
--   kernels       BIGINT   -    GPU kernels
--   total_ns      BIGINT   ns   first start to last end on the GPU, summed
--   busy_ns       BIGINT   ns   time with any GPU activity, summed
--   busy_pct      DOUBLE   pct  busy_ns of total_ns
--   op_time_ns    BIGINT   ns   GPU time of recorded op calls
--   modelled_ns   BIGINT   ns   of these, calls whose FLOPs and bytes are known
--   modelled_pct  DOUBLE   pct  modelled_ns of op_time_ns
--   limited_ns    BIGINT   ns   GPU time of calls that have a roofline
--   roofline_ns   DOUBLE   ns   least time of these calls on their devices
--   roofline_pct  DOUBLE   pct  roofline_ns of limited_ns
--   failing       BIGINT   -    traces that fail a check
--   analysed_at   VARCHAR  -    when the last of them was analysed, in UTC
SELECT
    count(*) AS traces,
    count(DISTINCT traces.label) AS labels,
    count(*) FILTER (WHERE traces.status = 'rejected') AS rejected,
    count(*) FILTER (WHERE traces.status IN ('repaired', 'partial')) AS damaged,
    CAST(sum(traces.events) AS BIGINT) AS events,
    CAST(sum(traces.kernels) AS BIGINT) AS kernels,
    CAST(sum(timeline.total_ns) AS BIGINT) AS total_ns,
    CAST(sum(timeline.busy_ns) AS BIGINT) AS busy_ns,
    100.0::DOUBLE * sum(timeline.busy_ns) / nullif(sum(timeline.total_ns), 0) AS busy_pct,
    CAST(sum(coverage.op_time_ns) AS BIGINT) AS op_time_ns,
    CAST(sum(coverage.modelled_ns) AS BIGINT) AS modelled_ns,
    100.0::DOUBLE * sum(coverage.modelled_ns) / nullif(sum(coverage.op_time_ns), 0)
        AS modelled_pct,
    CAST(sum(limits.limited_ns) AS BIGINT) AS limited_ns,
    sum(limits.roofline_ns) AS roofline_ns,
    100.0::DOUBLE * sum(limits.roofline_ns) / nullif(sum(limits.limited_ns), 0) AS roofline_pct,
    count(failed.trace_id) AS failing,
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
    OR traces.label = $label;
