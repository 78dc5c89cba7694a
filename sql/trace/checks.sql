-- Trust checks: how far the numbers of a trace can be trusted, and what makes them mislead.
--
-- grain:   one row per (trace_id, name)
-- reads:   _check_values
-- columns:
--   trace_id  VARCHAR  -  the trace
--   name      VARCHAR  -  the check; its last word is the unit of value, else it is a count
--   ok        BOOLEAN  -  whether value is as expected; NULL if there is nothing to check
--   value     DOUBLE   -  what was measured; NULL if there is nothing to measure
--   expected  VARCHAR  -  what value must be
--   meaning   VARCHAR  -  what it means for the numbers if value is not as expected
-- notes:
--   Sums must fit exactly: …_difference is 0. Damage to the text (cut_short, dropped_events) and
--   times that had to be mended (clipped_kernels, untimed_kernels, clock_domains) are never
--   passed over: 0. Shares have limits. GPU time that op_summary cannot name may be 5 pct, since
--   more can swap neighbours in a ranking of ops: unlinked, pre_window. What has a row of its own
--   in sight may be 10: graph replays, launches outside of any op, calls without shapes, and what
--   belongs to no step. A first activity before its launch in 1 pct of the launches is jitter, in
--   more a skewed clock.
--   missing_ranks needs the whole archive and is added when the warehouse is built.
CREATE OR REPLACE VIEW checks AS
WITH
    limits (name, at_most, meaning) AS (
        VALUES
            (
                'idle_difference_ns',
                0.0::DOUBLE,
                'busy time and gaps do not add up to the total of gpu_timeline: '
                || 'do not use idle times of this trace, and report it'
            ),
            (
                'timeline_difference_ns',
                0.0::DOUBLE,
                'computation and exposed times of gpu_timeline do not add up to busy time: '
                || 'do not use its breakdown, and report it'
            ),
            (
                'op_kernels_difference',
                0.0::DOUBLE,
                'op_summary does not hold every GPU activity exactly once: '
                || 'do not use its counts, and report it'
            ),
            (
                'op_time_difference_ns',
                0.0::DOUBLE,
                'the times of op_summary do not cover the busy time, or pass the sum of all '
                || 'durations: do not use its shares, and report it'
            ),
            (
                'kernel_time_difference_ns',
                0.0::DOUBLE,
                'the times of kernel_summary are not the sum of all durations: '
                || 'do not use its shares, and report it'
            ),
            (
                'unlinked_pct',
                5.0::DOUBLE,
                'this share of the GPU time has no launch call and no op: it counts as busy and in '
                || 'kernel_summary, but every op gets too little'
            ),
            (
                'pre_window_pct',
                5.0::DOUBLE,
                'this share of the GPU time was launched before the profiler started: it counts as '
                || 'busy, but belongs to no op or step, so both get too little'
            ),
            (
                'graph_without_op_pct',
                10.0::DOUBLE,
                'this share of the GPU time comes from graph replays whose ops no capture tells: '
                || 'op_summary has it under the graph launch, so rank by kernel, or give --capture'
            ),
            (
                'launch_without_op_pct',
                10.0::DOUBLE,
                'this share of the GPU time was launched outside of any op: '
                || 'op_summary has it under the launch call, so rank by kernel'
            ),
            (
                'without_step_pct',
                10.0::DOUBLE,
                'this share of the GPU time belongs to no step: it was launched between steps or '
                || 'on another thread, so the times of steps are too small'
            ),
            (
                'clipped_kernels',
                0.0::DOUBLE,
                'so many GPU activities ran far over their neighbours and were cut at the next '
                || 'start: their dur_ns is an upper bound, raw_dur_ns has what the file says'
            ),
            (
                'untimed_kernels',
                0.0::DOUBLE,
                'so many GPU activities have no usable start or duration: they are counted but '
                || 'take no time, so busy time and their sums are too small'
            ),
            (
                'without_shapes_pct',
                10.0::DOUBLE,
                'this share of the time of ops is of calls without input shapes: each op has one '
                || 'row for them in op_args_summary, and their FLOPs and bytes cannot be known'
            ),
            (
                'ambiguous_correlations',
                0.0::DOUBLE,
                'so many correlation ids belong to unrelated launches: '
                || 'their GPU activities are left without launch and op'
            ),
            (
                'clock_domains',
                0.0::DOUBLE,
                'GPU and CPU times do not share a clock: each side is right for itself, '
                || 'but launch delays and times between the two mean nothing'
            ),
            (
                'early_kernels_pct',
                1.0::DOUBLE,
                'this share of the launches starts its work before it was called, so the clocks '
                || 'are skewed: delays and idle causes are off by at least the most negative delay'
            ),
            (
                'dropped_events',
                0.0::DOUBLE,
                'so many events could not be read and are in no table: '
                || 'counts and times may be too small'
            ),
            (
                'cut_short',
                0.0::DOUBLE,
                'the file ends before its trace does: events are missing, '
                || 'often from its end, so totals and step counts are too small'
            )
    ),
    measured AS (
        SELECT
            trace_id,
            unnest([
                {'name': 'idle_difference_ns', 'value': idle_difference_ns},
                {'name': 'timeline_difference_ns', 'value': timeline_difference_ns},
                {'name': 'op_kernels_difference', 'value': op_kernels_difference},
                {'name': 'op_time_difference_ns', 'value': op_time_difference_ns},
                {'name': 'kernel_time_difference_ns', 'value': kernel_time_difference_ns},
                {'name': 'unlinked_pct', 'value': unlinked_pct},
                {'name': 'pre_window_pct', 'value': pre_window_pct},
                {'name': 'graph_without_op_pct', 'value': graph_without_op_pct},
                {'name': 'launch_without_op_pct', 'value': launch_without_op_pct},
                {'name': 'without_step_pct', 'value': without_step_pct},
                {'name': 'clipped_kernels', 'value': clipped_kernels},
                {'name': 'untimed_kernels', 'value': untimed_kernels},
                {'name': 'without_shapes_pct', 'value': without_shapes_pct},
                {'name': 'ambiguous_correlations', 'value': ambiguous_correlations},
                {'name': 'clock_domains', 'value': clock_domains},
                {'name': 'early_kernels_pct', 'value': early_kernels_pct},
                {'name': 'dropped_events', 'value': dropped_events},
                {'name': 'cut_short', 'value': cut_short}
            ]) AS entry
        FROM _check_values
    )
SELECT
    measured.trace_id,
    limits.name,
    measured.entry.value <= limits.at_most AS ok,
    measured.entry.value AS value,
    CASE
        WHEN limits.at_most = 0 THEN '0'
        ELSE 'at most ' || CAST(CAST(limits.at_most AS INTEGER) AS VARCHAR)
    END AS expected,
    limits.meaning
FROM measured
JOIN limits ON limits.name = measured.entry.name;
