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
    gpu AS (
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
    ),
    stepped AS (
        SELECT DISTINCT trace_id
        FROM annotations
        WHERE role = 'step'
    ),
    gaps AS (
        SELECT
            trace_id,
            sum(CAST(dur_ns AS HUGEINT)) AS gap_ns
        FROM idle_gaps
        GROUP BY trace_id
    ),
    devices AS (
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
    ),
    op_sums AS (
        SELECT
            trace_id,
            sum(kernel_count) AS kernel_count,
            sum(CAST(direct_kernel_time_ns AS HUGEINT)) AS time_ns
        FROM op_summary
        GROUP BY trace_id
    ),
    kernel_sums AS (
        SELECT
            trace_id,
            sum(CAST(time_ns AS HUGEINT)) AS time_ns
        FROM kernel_summary
        GROUP BY trace_id
    ),
    shaped AS (
        SELECT
            trace_id,
            signature_id
        FROM signatures
        WHERE input_dims IS NOT NULL
    ),
    calls AS (
        SELECT
            ops.trace_id,
            sum(CAST(ops.direct_kernel_time_ns AS HUGEINT)) AS gpu_ns,
            sum(CAST(ops.direct_kernel_time_ns AS HUGEINT)) FILTER (
                WHERE shaped.signature_id IS NULL
            ) AS unshaped_gpu_ns,
            sum(CAST(ops.self_ns AS HUGEINT)) AS host_ns,
            sum(CAST(ops.self_ns AS HUGEINT)) FILTER (
                WHERE shaped.signature_id IS NULL
            ) AS unshaped_host_ns
        FROM ops
        LEFT JOIN shaped
            ON shaped.trace_id = ops.trace_id
            AND shaped.signature_id = ops.signature_id
        WHERE coalesce(ops.category NOT IN ('collective', 'record_param_comms'), TRUE)
        GROUP BY ops.trace_id
    ),
    delays AS (
        SELECT
            trace_id,
            count(delay_ns) AS measured,
            count(*) FILTER (WHERE delay_ns < 0) AS negative
        FROM launches
        GROUP BY trace_id
    ),
    found AS (
        SELECT
            trace_id,
            sum(count) FILTER (WHERE code = 'CORRELATION_AMBIGUOUS') AS ambiguous,
            count(*) FILTER (WHERE code = 'CLOCK_DOMAIN') AS clocks,
            sum(count) FILTER (WHERE code = 'DROPPED_EVENT') AS dropped,
            sum(count) FILTER (WHERE code IN ('TRUNCATED', 'INTERLEAVED_WRITERS')) AS cut
        FROM issues
        GROUP BY trace_id
    )
SELECT
    traces.trace_id,
    CAST(abs(devices.idle_ns - coalesce(gaps.gap_ns, 0)) AS DOUBLE) AS idle_difference_ns,
    CAST(devices.timeline_difference_ns AS DOUBLE) AS timeline_difference_ns,
    CAST(abs(gpu.activities - coalesce(op_sums.kernel_count, 0)) AS DOUBLE)
        AS op_kernels_difference,
    CASE
        WHEN gpu.time_ns IS NOT NULL THEN CAST(
            greatest(whole.busy_ns - op_sums.time_ns, op_sums.time_ns - gpu.time_ns, 0) AS DOUBLE
        )
    END AS op_time_difference_ns,
    CAST(abs(kernel_sums.time_ns - gpu.time_ns) AS DOUBLE) AS kernel_time_difference_ns,
    100.0::DOUBLE * coalesce(gpu.unlinked_ns, 0) / nullif(gpu.time_ns, 0) AS unlinked_pct,
    100.0::DOUBLE * coalesce(gpu.pre_window_ns, 0) / nullif(gpu.time_ns, 0) AS pre_window_pct,
    100.0::DOUBLE * coalesce(gpu.graph_ns, 0) / nullif(gpu.time_ns, 0) AS graph_without_op_pct,
    100.0::DOUBLE * coalesce(gpu.bare_launch_ns, 0) / nullif(gpu.time_ns, 0)
        AS launch_without_op_pct,
    CASE
        WHEN stepped.trace_id IS NOT NULL
            THEN 100.0::DOUBLE * coalesce(gpu.stepless_ns, 0) / nullif(gpu.time_ns, 0)
    END AS without_step_pct,
    CAST(gpu.clipped AS DOUBLE) AS clipped_kernels,
    CAST(gpu.untimed AS DOUBLE) AS untimed_kernels,
    CASE
        WHEN calls.gpu_ns > 0
            THEN 100.0::DOUBLE * coalesce(calls.unshaped_gpu_ns, 0) / calls.gpu_ns
        ELSE 100.0::DOUBLE * coalesce(calls.unshaped_host_ns, 0) / nullif(calls.host_ns, 0)
    END AS without_shapes_pct,
    CASE
        WHEN gpu.activities > 0 THEN CAST(coalesce(found.ambiguous, 0) AS DOUBLE)
    END AS ambiguous_correlations,
    CASE
        WHEN gpu.activities > 0 THEN CAST(coalesce(found.clocks, 0) AS DOUBLE)
    END AS clock_domains,
    100.0::DOUBLE * delays.negative / nullif(delays.measured, 0) AS early_kernels_pct,
    CASE
        WHEN traces.status <> 'rejected' THEN CAST(coalesce(found.dropped, 0) AS DOUBLE)
    END AS dropped_events,
    CASE
        WHEN traces.status <> 'rejected' THEN CAST(coalesce(found.cut, 0) AS DOUBLE)
    END AS cut_short
FROM traces
LEFT JOIN gpu ON gpu.trace_id = traces.trace_id
LEFT JOIN stepped ON stepped.trace_id = traces.trace_id
LEFT JOIN gaps ON gaps.trace_id = traces.trace_id
LEFT JOIN devices ON devices.trace_id = traces.trace_id
LEFT JOIN trace_timeline AS whole ON whole.trace_id = traces.trace_id
LEFT JOIN op_sums ON op_sums.trace_id = traces.trace_id
LEFT JOIN kernel_sums ON kernel_sums.trace_id = traces.trace_id
LEFT JOIN calls ON calls.trace_id = traces.trace_id
LEFT JOIN delays ON delays.trace_id = traces.trace_id
LEFT JOIN found ON found.trace_id = traces.trace_id;
