-- GPU time by phase of serving or training, steady run and op: op_summary, split by phase.
--
-- grain:   one row per (trace_id, phase, region_id, name)
-- reads:   kernels, launches, ops, step_phases, _phase_steps
-- columns:
--   trace_id               VARCHAR  -    trace the row belongs to
--   phase                  VARCHAR  -    phase of the steps, as in steps; NULL: in no step
--   region_id              BIGINT   -    steady run, as in steady_state; NULL: in none
--   name                   VARCHAR  -    op; else launch call; else `(no op)`
--   category               VARCHAR  -    category of the op; `launch`; `(no op)`
--   steps                  BIGINT   -    steps of that phase and run; NULL: in no step
--   count                  BIGINT   -    calls that launched GPU work; activities for `(no op)`
--   kernel_count           BIGINT   -    GPU activities they launched directly
--   direct_kernel_time_ns  BIGINT   ns   union of these activities, per call, summed
--   per_step_ns            DOUBLE   ns   direct_kernel_time_ns / steps
--   mean_ns                DOUBLE   ns   mean of direct_kernel_time_ns per call
--   median_ns              DOUBLE   ns   median of direct_kernel_time_ns per call
--   min_ns                 BIGINT   ns   smallest direct_kernel_time_ns of a call
--   max_ns                 BIGINT   ns   largest direct_kernel_time_ns of a call
--   pct                    DOUBLE   pct  share of the phase and run's direct_kernel_time_ns
-- notes:
--   Each call is of the step that it starts in, a lone activity of the step that it was tied to.
--   The rows of a trace add up to op_summary: steps outside any steady run have a row of their own.
CREATE OR REPLACE VIEW phase_op_summary AS
WITH
    launches_without_op AS (
        SELECT
            trace_id,
            launch_id
        FROM kernels
        WHERE op_id IS NULL
            AND launch_id IS NOT NULL
    ),
    calls AS (
        SELECT
            trace_id,
            step_id,
            name,
            category,
            direct_kernel_count AS kernel_count,
            direct_kernel_time_ns
        FROM ops
        WHERE direct_kernel_count > 0
        UNION ALL
        SELECT
            launches.trace_id,
            launches.step_id,
            launches.name,
            'launch' AS category,
            launches.kernel_count,
            launches.kernel_time_ns AS direct_kernel_time_ns
        FROM launches
        SEMI JOIN launches_without_op
            ON launches_without_op.trace_id = launches.trace_id
            AND launches_without_op.launch_id = launches.event_id
        UNION ALL
        SELECT
            trace_id,
            step_id,
            '(no op)' AS name,
            '(no op)' AS category,
            1 AS kernel_count,
            dur_ns AS direct_kernel_time_ns
        FROM kernels
        WHERE op_id IS NULL
            AND launch_id IS NULL
    ),
    grouped AS (
        SELECT
            calls.trace_id,
            step_phases.phase,
            step_phases.region_id,
            calls.name,
            min(calls.category) AS category,
            count(*) AS count,
            TRY_CAST(sum(calls.kernel_count) AS BIGINT) AS kernel_count,
            TRY_CAST(sum(calls.direct_kernel_time_ns) AS BIGINT) AS direct_kernel_time_ns,
            avg(calls.direct_kernel_time_ns) AS mean_ns,
            median(calls.direct_kernel_time_ns) AS median_ns,
            min(calls.direct_kernel_time_ns) AS min_ns,
            max(calls.direct_kernel_time_ns) AS max_ns
        FROM calls
        LEFT JOIN step_phases
            ON step_phases.trace_id = calls.trace_id
            AND step_phases.step_id = calls.step_id
        GROUP BY calls.trace_id, step_phases.phase, step_phases.region_id, calls.name
    )
SELECT
    grouped.trace_id,
    grouped.phase,
    grouped.region_id,
    grouped.name,
    grouped.category,
    phases.steps,
    grouped.count,
    grouped.kernel_count,
    grouped.direct_kernel_time_ns,
    grouped.direct_kernel_time_ns::DOUBLE / phases.steps AS per_step_ns,
    grouped.mean_ns,
    grouped.median_ns,
    grouped.min_ns,
    grouped.max_ns,
    100.0::DOUBLE * grouped.direct_kernel_time_ns
    / nullif(sum(grouped.direct_kernel_time_ns) OVER (
        PARTITION BY grouped.trace_id, grouped.phase, grouped.region_id
    ), 0) AS pct
FROM grouped
LEFT JOIN _phase_steps AS phases
    ON phases.trace_id = grouped.trace_id
    AND phases.phase = grouped.phase
    AND phases.region_id IS NOT DISTINCT FROM grouped.region_id;
