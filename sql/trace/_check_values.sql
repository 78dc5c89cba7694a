-- What the trust checks measure, one column a check; 0 is the best each can be.
--
-- grain:   one row per (trace_id)
-- reads:   traces, issues, kernels, launches, ops, annotations, signatures, idle_gaps,
--          gpu_timeline, trace_timeline, op_summary, kernel_summary
-- columns:
--   trace_id                  VARCHAR  -    the trace
--   idle_difference_ns        DOUBLE   ns   |busy + gaps - total|, of all devices together
--   timeline_difference_ns    DOUBLE   ns   |computation + exposed times - busy|, likewise
--   op_kernels_difference     DOUBLE   -    |activities in op_summary - activities|
--   op_time_difference_ns     DOUBLE   ns   time in op_summary below busy or above Σ durations
--   kernel_time_difference_ns DOUBLE   ns   |time in kernel_summary - sum of durations|
--   unlinked_pct              DOUBLE   pct  GPU time without a launch or op, launched in the window
--   pre_window_pct            DOUBLE   pct  GPU time launched before the window
--   graph_without_op_pct      DOUBLE   pct  GPU time of graph launches whose op no capture tells
--   launch_without_op_pct     DOUBLE   pct  GPU time of other launches outside of any op
--   without_step_pct          DOUBLE   pct  GPU time that belongs to no step; NULL without steps
--   clipped_kernels           DOUBLE   -    activities whose duration was cut
--   untimed_kernels           DOUBLE   -    activities without a known start or duration
--   without_shapes_pct        DOUBLE   pct  time of op calls without input shapes
--   ambiguous_correlations    DOUBLE   -    correlation ids of several unrelated launches
--   clock_domains             DOUBLE   -    1 if GPU and CPU times do not share a clock
--   early_kernels_pct         DOUBLE   pct  launches whose first activity starts before they do
--   dropped_events            DOUBLE   -    events that could not be read
--   cut_short                 DOUBLE   -    places where the text ends before the trace does
-- notes:
--   NULL where there is nothing to measure: no GPU activity, no op call, no launch, or a rejected
--   trace. Shares of GPU time are of the summed durations. Calls without shapes are weighed by the
--   GPU time they launched directly; by host time of their own, where no call launched any.
--   Collectives do not count there: their sizes stand in args of their own.
CREATE OR REPLACE VIEW _check_values AS
WITH
    shaped AS (
        SELECT
            trace_id,
            signature_id
        FROM signatures
        WHERE input_dims IS NOT NULL
    ),
    calls AS (
        SELECT
            trace_id,
            signature_id,
            sum(CAST(direct_kernel_time_ns AS HUGEINT)) AS gpu_ns,
            sum(CAST(self_ns AS HUGEINT)) AS host_ns
        FROM ops
        WHERE coalesce(category NOT IN ('collective', 'record_param_comms'), TRUE)
        GROUP BY trace_id, signature_id
    ),
    sums AS (
        SELECT
            trace_id,
            TRUE AS is_trace,
            status
        FROM traces
        UNION ALL BY NAME
        SELECT
            trace_id,
            count(*) AS activities,
            sum(CAST(dur_ns AS HUGEINT)) AS time_ns,
            sum(CAST(dur_ns AS HUGEINT)) FILTER (WHERE why_unlinked = 'pre_window')
                AS pre_window_ns,
            sum(CAST(dur_ns AS HUGEINT)) FILTER (
                WHERE link = 'none'
                    AND why_unlinked IS DISTINCT FROM 'pre_window'
            ) AS unlinked_ns,
            sum(CAST(dur_ns AS HUGEINT)) FILTER (WHERE graph AND op_id IS NULL) AS graph_ns,
            sum(CAST(dur_ns AS HUGEINT)) FILTER (
                WHERE NOT graph
                    AND op_id IS NULL
                    AND launch_id IS NOT NULL
            ) AS bare_launch_ns,
            sum(CAST(dur_ns AS HUGEINT)) FILTER (WHERE step_id IS NULL) AS stepless_ns,
            count(*) FILTER (WHERE raw_dur_ns IS NOT NULL AND dur_ns IS NOT NULL) AS clipped,
            count(*) FILTER (WHERE ts_ns IS NULL OR dur_ns IS NULL) AS untimed
        FROM kernels
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT DISTINCT
            trace_id,
            TRUE AS is_stepped
        FROM annotations
        WHERE role = 'step'
        UNION ALL BY NAME
        SELECT
            trace_id,
            sum(CAST(dur_ns AS HUGEINT)) AS gap_ns
        FROM idle_gaps
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT
            trace_id,
            sum(CAST(total_ns AS HUGEINT) - busy_ns) AS idle_ns,
            sum(
                abs(
                    CAST(computation_ns AS HUGEINT)
                    + exposed_comm_ns
                    + exposed_memcpy_ns
                    - busy_ns
                )
            ) AS timeline_difference_ns
        FROM gpu_timeline
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT
            trace_id,
            CAST(busy_ns AS HUGEINT) AS busy_ns
        FROM trace_timeline
        UNION ALL BY NAME
        SELECT
            trace_id,
            sum(kernel_count) AS op_kernel_count,
            sum(CAST(direct_kernel_time_ns AS HUGEINT)) AS op_time_ns
        FROM op_summary
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT
            trace_id,
            sum(CAST(time_ns AS HUGEINT)) AS kernel_time_ns
        FROM kernel_summary
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT
            calls.trace_id,
            sum(calls.gpu_ns) AS call_gpu_ns,
            sum(calls.gpu_ns) FILTER (WHERE shaped.signature_id IS NULL) AS unshaped_gpu_ns,
            sum(calls.host_ns) AS call_host_ns,
            sum(calls.host_ns) FILTER (WHERE shaped.signature_id IS NULL) AS unshaped_host_ns
        FROM calls
        LEFT JOIN shaped
            ON shaped.trace_id = calls.trace_id
            AND shaped.signature_id = calls.signature_id
        GROUP BY calls.trace_id
        UNION ALL BY NAME
        SELECT
            trace_id,
            count(delay_ns) AS measured,
            count(*) FILTER (WHERE delay_ns < 0) AS negative
        FROM launches
        GROUP BY trace_id
        UNION ALL BY NAME
        SELECT
            trace_id,
            sum(count) FILTER (WHERE code = 'CORRELATION_AMBIGUOUS') AS ambiguous,
            count(*) FILTER (WHERE code = 'CLOCK_DOMAIN') AS clocks,
            sum(count) FILTER (WHERE code = 'DROPPED_EVENT') AS dropped,
            sum(count) FILTER (WHERE code IN ('TRUNCATED', 'INTERLEAVED_WRITERS')) AS cut
        FROM issues
        GROUP BY trace_id
    ),
    whole AS (
        SELECT
            trace_id,
            max(status) AS status,
            max(activities) AS activities,
            max(time_ns) AS time_ns,
            max(pre_window_ns) AS pre_window_ns,
            max(unlinked_ns) AS unlinked_ns,
            max(graph_ns) AS graph_ns,
            max(bare_launch_ns) AS bare_launch_ns,
            max(stepless_ns) AS stepless_ns,
            max(clipped) AS clipped,
            max(untimed) AS untimed,
            bool_or(is_stepped) AS is_stepped,
            max(gap_ns) AS gap_ns,
            max(idle_ns) AS idle_ns,
            max(timeline_difference_ns) AS timeline_difference_ns,
            max(busy_ns) AS busy_ns,
            max(op_kernel_count) AS op_kernel_count,
            max(op_time_ns) AS op_time_ns,
            max(kernel_time_ns) AS kernel_time_ns,
            max(call_gpu_ns) AS call_gpu_ns,
            max(unshaped_gpu_ns) AS unshaped_gpu_ns,
            max(call_host_ns) AS call_host_ns,
            max(unshaped_host_ns) AS unshaped_host_ns,
            max(measured) AS measured,
            max(negative) AS negative,
            max(ambiguous) AS ambiguous,
            max(clocks) AS clocks,
            max(dropped) AS dropped,
            max(cut) AS cut
        FROM sums
        GROUP BY trace_id
        HAVING bool_or(is_trace)
    )
SELECT
    trace_id,
    CAST(abs(idle_ns - coalesce(gap_ns, 0)) AS DOUBLE) AS idle_difference_ns,
    CAST(timeline_difference_ns AS DOUBLE) AS timeline_difference_ns,
    CAST(abs(activities - coalesce(op_kernel_count, 0)) AS DOUBLE) AS op_kernels_difference,
    CASE
        WHEN time_ns IS NOT NULL
            THEN CAST(greatest(busy_ns - op_time_ns, op_time_ns - time_ns, 0) AS DOUBLE)
    END AS op_time_difference_ns,
    CAST(abs(kernel_time_ns - time_ns) AS DOUBLE) AS kernel_time_difference_ns,
    100.0::DOUBLE * coalesce(unlinked_ns, 0) / nullif(time_ns, 0) AS unlinked_pct,
    100.0::DOUBLE * coalesce(pre_window_ns, 0) / nullif(time_ns, 0) AS pre_window_pct,
    100.0::DOUBLE * coalesce(graph_ns, 0) / nullif(time_ns, 0) AS graph_without_op_pct,
    100.0::DOUBLE * coalesce(bare_launch_ns, 0) / nullif(time_ns, 0) AS launch_without_op_pct,
    CASE
        WHEN is_stepped THEN 100.0::DOUBLE * coalesce(stepless_ns, 0) / nullif(time_ns, 0)
    END AS without_step_pct,
    CAST(clipped AS DOUBLE) AS clipped_kernels,
    CAST(untimed AS DOUBLE) AS untimed_kernels,
    CASE
        WHEN call_gpu_ns > 0
            THEN 100.0::DOUBLE * coalesce(unshaped_gpu_ns, 0) / call_gpu_ns
        ELSE 100.0::DOUBLE * coalesce(unshaped_host_ns, 0) / nullif(call_host_ns, 0)
    END AS without_shapes_pct,
    CASE
        WHEN activities > 0 THEN CAST(coalesce(ambiguous, 0) AS DOUBLE)
    END AS ambiguous_correlations,
    CASE
        WHEN activities > 0 THEN CAST(coalesce(clocks, 0) AS DOUBLE)
    END AS clock_domains,
    100.0::DOUBLE * negative / nullif(measured, 0) AS early_kernels_pct,
    CASE
        WHEN status <> 'rejected' THEN CAST(coalesce(dropped, 0) AS DOUBLE)
    END AS dropped_events,
    CASE
        WHEN status <> 'rejected' THEN CAST(coalesce(cut, 0) AS DOUBLE)
    END AS cut_short
FROM whole;
