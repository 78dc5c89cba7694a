-- GPU time by phase of serving or training, steady run and kernel: kernel_summary, split by phase.
--
-- grain:   one row per (trace_id, phase, region_id, name, kind)
-- reads:   kernels, step_phases, _phase_steps
-- columns:
--   trace_id     VARCHAR  -    trace the row belongs to
--   phase        VARCHAR  -    phase of the steps, as in steps; NULL: in no step
--   region_id    BIGINT   -    steady run, as in steady_state; NULL: in none
--   name         VARCHAR  -    name of the kernel, copy or fill, as it stands in the trace
--   kind         VARCHAR  -    compute, comm, memcpy or memset
--   short_name   VARCHAR  -    name without return type, namespaces, template and call arguments
--   steps        BIGINT   -    steps of that phase and run; NULL: in no step
--   count        BIGINT   -    GPU activities of this name
--   time_ns      BIGINT   ns   their durations, summed
--   per_step_ns  DOUBLE   ns   time_ns / steps
--   mean_ns      DOUBLE   ns   mean duration
--   median_ns    DOUBLE   ns   median duration
--   min_ns       BIGINT   ns   shortest duration
--   max_ns       BIGINT   ns   longest duration
--   pct          DOUBLE   pct  share of the phase and run's time_ns
-- notes:
--   The rows of a trace add up to kernel_summary: steps outside any steady run have a row of their
--   own.
CREATE OR REPLACE VIEW phase_kernel_summary AS
WITH
    grouped AS (
        SELECT
            kernels.trace_id,
            step_phases.phase,
            step_phases.region_id,
            kernels.name,
            kernels.kind,
            min(kernels.short_name) AS short_name,
            count(*) AS count,
            TRY_CAST(sum(kernels.dur_ns) AS BIGINT) AS time_ns,
            avg(kernels.dur_ns) AS mean_ns,
            median(kernels.dur_ns) AS median_ns,
            min(kernels.dur_ns) AS min_ns,
            max(kernels.dur_ns) AS max_ns
        FROM kernels
        LEFT JOIN step_phases
            ON step_phases.trace_id = kernels.trace_id
            AND step_phases.step_id = kernels.step_id
        GROUP BY
            kernels.trace_id, step_phases.phase, step_phases.region_id, kernels.name, kernels.kind
    )
SELECT
    grouped.trace_id,
    grouped.phase,
    grouped.region_id,
    grouped.name,
    grouped.kind,
    grouped.short_name,
    phases.steps,
    grouped.count,
    grouped.time_ns,
    grouped.time_ns::DOUBLE / phases.steps AS per_step_ns,
    grouped.mean_ns,
    grouped.median_ns,
    grouped.min_ns,
    grouped.max_ns,
    100.0::DOUBLE * grouped.time_ns
    / nullif(sum(grouped.time_ns) OVER (
        PARTITION BY grouped.trace_id, grouped.phase, grouped.region_id
    ), 0) AS pct
FROM grouped
LEFT JOIN _phase_steps AS phases
    ON phases.trace_id = grouped.trace_id
    AND phases.phase = grouped.phase
    AND phases.region_id IS NOT DISTINCT FROM grouped.region_id;
