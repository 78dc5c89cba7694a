-- Distance from the roofline by phase of serving or training, steady run, op and inputs.
--
-- grain:   one row per (trace_id, phase, region_id, name, signature_id, compute_spec)
-- reads:   op_perf, signatures, step_phases, _phase_steps
-- columns:
--   trace_id        VARCHAR  -           the trace
--   phase           VARCHAR  -           phase of the steps, as in steps; NULL: in no step
--   region_id       BIGINT   -           steady run, as in steady_state; NULL: in none
--   name            VARCHAR  -           the op
--   signature_id    BIGINT   -           its inputs; NULL if none recorded
--   compute_spec    VARCHAR  -           the peak that bounds it, e.g. matrix_bf16; NULL if none
--   category        VARCHAR  -           category of the op
--   family          VARCHAR  -           which formula it has
--   input_dims      VARCHAR  -           shape per input, as text
--   input_types     VARCHAR  -           type per input, as text
--   steps           BIGINT   -           steps of that phase and run; NULL: in no step
--   count           BIGINT   -           calls
--   kernel_count    BIGINT   -           GPU activities of the calls
--   kernel_time_ns  BIGINT   ns          union of these activities, per call, summed
--   per_step_ns     DOUBLE   ns          kernel_time_ns / steps
--   pct             DOUBLE   pct         share of the phase and run's kernel_time_ns
--   mean_ns         DOUBLE   ns          mean time of a call
--   flops           BIGINT   flops       of all calls; NULL if that of one is unknown
--   bytes           BIGINT   bytes       of all calls; NULL if those of one are unknown
--   flops_per_byte  DOUBLE   flops/byte  flops / bytes
--   tflops_s        DOUBLE   TFLOPS/s    flops / kernel_time_ns
--   tb_s            DOUBLE   TB/s        bytes / kernel_time_ns
--   arch            VARCHAR  -           device whose peaks are used; NULL if it is not known
--   roofline_ns     DOUBLE   ns          least time on the device, of all calls; NULL if unknown
--   roofline_pct    DOUBLE   pct         roofline_ns / kernel_time_ns: 100 is at the limit
--   bound           VARCHAR  -           compute or memory: what bounds a call; NULL if unknown
--   why             VARCHAR  -           why flops, bytes or the roofline are NULL
-- notes:
--   The counted rows of op_perf; those of a trace add up to roofline: steps outside any steady run
--   have a row of their own. GPU time without a recorded op is in phase_op_summary.
CREATE OR REPLACE VIEW phase_roofline AS
WITH
    counted AS (
        SELECT
            op_perf.trace_id,
            step_phases.phase,
            step_phases.region_id,
            op_perf.name,
            op_perf.signature_id,
            op_perf.compute_spec,
            op_perf.category,
            op_perf.family,
            op_perf.kernel_count,
            op_perf.kernel_time_ns,
            op_perf.flops,
            op_perf.bytes,
            op_perf.arch,
            op_perf.roofline_ns,
            op_perf.bound,
            op_perf.why
        FROM op_perf
        LEFT JOIN step_phases
            ON step_phases.trace_id = op_perf.trace_id
            AND step_phases.step_id = op_perf.step_id
        WHERE op_perf.counted
    ),
    grouped AS (
        SELECT
            trace_id,
            phase,
            region_id,
            name,
            signature_id,
            compute_spec,
            min(category) AS category,
            min(family) AS family,
            count(*) AS count,
            TRY_CAST(sum(kernel_count) AS BIGINT) AS kernel_count,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(kernel_time_ns) AS mean_ns,
            CASE WHEN count(flops) = count(*) THEN TRY_CAST(sum(flops) AS BIGINT) END AS flops,
            CASE WHEN count(bytes) = count(*) THEN TRY_CAST(sum(bytes) AS BIGINT) END AS bytes,
            min(arch) AS arch,
            CASE
                WHEN count(roofline_ns) = count(*) THEN round(sum(roofline_ns), 6)
            END AS roofline_ns,
            CASE WHEN count(roofline_ns) = count(*) THEN min(bound) END AS bound,
            min(why) AS why
        FROM counted
        GROUP BY trace_id, phase, region_id, name, signature_id, compute_spec
    )
SELECT
    grouped.trace_id,
    grouped.phase,
    grouped.region_id,
    grouped.name,
    grouped.signature_id,
    grouped.compute_spec,
    grouped.category,
    grouped.family,
    CAST(signatures.input_dims AS VARCHAR) AS input_dims,
    CAST(signatures.input_types AS VARCHAR) AS input_types,
    phases.steps,
    grouped.count,
    grouped.kernel_count,
    grouped.kernel_time_ns,
    grouped.kernel_time_ns::DOUBLE / phases.steps AS per_step_ns,
    100.0::DOUBLE * grouped.kernel_time_ns
    / nullif(sum(grouped.kernel_time_ns) OVER (
        PARTITION BY grouped.trace_id, grouped.phase, grouped.region_id
    ), 0) AS pct,
    grouped.mean_ns,
    grouped.flops,
    grouped.bytes,
    grouped.flops::DOUBLE / nullif(grouped.bytes, 0) AS flops_per_byte,
    grouped.flops / (1000.0::DOUBLE * nullif(grouped.kernel_time_ns, 0)) AS tflops_s,
    grouped.bytes / (1000.0::DOUBLE * nullif(grouped.kernel_time_ns, 0)) AS tb_s,
    grouped.arch,
    grouped.roofline_ns,
    100.0::DOUBLE * grouped.roofline_ns / nullif(grouped.kernel_time_ns, 0) AS roofline_pct,
    grouped.bound,
    grouped.why
FROM grouped
LEFT JOIN signatures
    ON signatures.trace_id = grouped.trace_id
    AND signatures.signature_id = grouped.signature_id
LEFT JOIN _phase_steps AS phases
    ON phases.trace_id = grouped.trace_id
    AND phases.phase = grouped.phase
    AND phases.region_id IS NOT DISTINCT FROM grouped.region_id;
