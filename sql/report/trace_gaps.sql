-- The longest gaps in which a device of a trace did nothing.
--
-- grain:   one row per (lane, at_ns)
-- reads:   gpu_timeline, idle_gaps, kernels
-- columns:
--   lane           VARCHAR  -    the device
--   at_ns          BIGINT   ns   start of the gap, from the first GPU activity of the trace
--   until_ns       BIGINT   ns   its end
--   gap_ns         BIGINT   ns   its length
--   idle_pct       DOUBLE   pct  its share of the idle time of the device
--   cause          VARCHAR  -    why the device waited; NULL if not known
--   after_kernel   VARCHAR  -    what ran before
--   before_kernel  VARCHAR  -    what ran then
-- notes:
--   The 300 longest.
WITH
    frame AS (
        SELECT min(start_ns) AS first_ns
        FROM gpu_timeline
        WHERE trace_id = $trace_id
    ),
    gaps AS (
        SELECT
            rank_label,
            device,
            ts_ns,
            dur_ns,
            cause,
            prev_kernel_id,
            next_kernel_id
        FROM idle_gaps
        WHERE trace_id = $trace_id
        ORDER BY dur_ns DESC, ts_ns, device
        LIMIT 300
    )
SELECT
    concat_ws(' ', gaps.rank_label, 'GPU', coalesce(CAST(gaps.device AS VARCHAR), '?')) AS lane,
    gaps.ts_ns - frame.first_ns AS at_ns,
    gaps.ts_ns + gaps.dur_ns - frame.first_ns AS until_ns,
    gaps.dur_ns AS gap_ns,
    100.0::DOUBLE * gaps.dur_ns / nullif(timeline.idle_ns, 0) AS idle_pct,
    gaps.cause,
    before.short_name AS after_kernel,
    then_ran.short_name AS before_kernel
FROM gaps
CROSS JOIN frame
LEFT JOIN gpu_timeline AS timeline
    ON timeline.trace_id = $trace_id
    AND timeline.rank_label IS NOT DISTINCT FROM gaps.rank_label
    AND timeline.device IS NOT DISTINCT FROM gaps.device
LEFT JOIN (SELECT event_id, short_name FROM kernels WHERE trace_id = $trace_id) AS before
    ON before.event_id = gaps.prev_kernel_id
LEFT JOIN (SELECT event_id, short_name FROM kernels WHERE trace_id = $trace_id) AS then_ran
    ON then_ran.event_id = gaps.next_kernel_id
ORDER BY gaps.dur_ns DESC, gaps.ts_ns, gaps.device;
