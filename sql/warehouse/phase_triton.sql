-- Compiled kernels by phase of serving or training and steady run: triton_kernels, summed.
--
-- grain:   one row per (trace_id, phase, region_id, name, signature_id, kernel_hash)
-- reads:   step_phases, triton_kernels, _phase_steps
-- columns:
--   trace_id        VARCHAR    -           the trace
--   phase           VARCHAR    -           phase of the steps, as in steps; NULL: in no step
--   region_id       BIGINT     -           steady run, as in steady_state; NULL: in none
--   name            VARCHAR    -           name of the kernel
--   signature_id    BIGINT     -           its inputs; NULL if none recorded
--   kernel_hash     VARCHAR    -           hash of its file; NULL if none recorded
--   kind            VARCHAR    -           as in triton_kernels
--   aten_ops        VARCHAR[]  -           ops that it fused; NULL if no name tells
--   steps           BIGINT     -           steps of that phase and run; NULL: in no step
--   count           BIGINT     -           launches
--   timed           BIGINT     -           of these, launches that have GPU activities
--   kernel_time_ns  BIGINT     ns          union of their activities, per launch, summed
--   per_step_ns     DOUBLE     ns          kernel_time_ns / steps
--   mean_ns         DOUBLE     ns          mean time of a launch that has activities
--   flops           DOUBLE     flops       mean of a launch; NULL if that of one is unknown
--   bytes           DOUBLE     bytes       mean of a launch; NULL if those of one are unknown
--   flops_per_byte  DOUBLE     flops/byte  flops / bytes
--   tflops_s        DOUBLE     TFLOPS/s    work of all launches with activities / their time
--   tb_s            DOUBLE     TB/s        bytes of all launches with activities / their time
--   arch            VARCHAR    -           device whose peaks are used; NULL if it is not known
--   roofline_pct    DOUBLE     pct         their least times on the device / their time
--   bound           VARCHAR    -           compute or memory: what bounds a launch
--   why             VARCHAR    -           why something is NULL
-- notes:
--   The rows of a trace add up to triton_summary: steps outside any steady run have a row of their
--   own.
CREATE OR REPLACE VIEW phase_triton AS
WITH
    launched AS (
        SELECT
            triton_kernels.trace_id,
            step_phases.phase,
            step_phases.region_id,
            triton_kernels.name,
            triton_kernels.signature_id,
            triton_kernels.kernel_hash,
            triton_kernels.kind,
            triton_kernels.aten_ops,
            triton_kernels.kernel_time_ns,
            triton_kernels.flops,
            triton_kernels.bytes,
            triton_kernels.arch,
            triton_kernels.roofline_ns,
            triton_kernels.bound,
            triton_kernels.why
        FROM triton_kernels
        LEFT JOIN step_phases
            ON step_phases.trace_id = triton_kernels.trace_id
            AND step_phases.step_id = triton_kernels.step_id
    ),
    grouped AS (
        SELECT
            trace_id,
            phase,
            region_id,
            name,
            signature_id,
            kernel_hash,
            min(kind) AS kind,
            min(aten_ops) AS aten_ops,
            count(*) AS count,
            count(kernel_time_ns) AS timed,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(kernel_time_ns) AS mean_ns,
            CASE WHEN count(flops) = count(*) THEN avg(flops) END AS flops,
            CASE WHEN count(bytes) = count(*) THEN avg(bytes) END AS bytes,
            sum(flops) FILTER (WHERE kernel_time_ns > 0)
            / (1000.0::DOUBLE * nullif(sum(kernel_time_ns), 0)) AS tflops_s,
            sum(bytes) FILTER (WHERE kernel_time_ns > 0)
            / (1000.0::DOUBLE * nullif(sum(kernel_time_ns), 0)) AS tb_s,
            min(arch) AS arch,
            CASE
                WHEN count(roofline_ns) = count(*)
                    THEN 100.0::DOUBLE
                        * round(sum(roofline_ns) FILTER (WHERE kernel_time_ns > 0), 6)
                        / nullif(sum(kernel_time_ns), 0)
            END AS roofline_pct,
            CASE WHEN count(roofline_ns) = count(*) THEN min(bound) END AS bound,
            min(why) AS why
        FROM launched
        GROUP BY trace_id, phase, region_id, name, signature_id, kernel_hash
    )
SELECT
    grouped.trace_id,
    grouped.phase,
    grouped.region_id,
    grouped.name,
    grouped.signature_id,
    grouped.kernel_hash,
    grouped.kind,
    grouped.aten_ops,
    phases.steps,
    grouped.count,
    grouped.timed,
    grouped.kernel_time_ns,
    grouped.kernel_time_ns::DOUBLE / phases.steps AS per_step_ns,
    grouped.mean_ns,
    grouped.flops,
    grouped.bytes,
    grouped.flops / nullif(grouped.bytes, 0) AS flops_per_byte,
    CASE WHEN grouped.flops IS NOT NULL THEN grouped.tflops_s END AS tflops_s,
    CASE WHEN grouped.bytes IS NOT NULL THEN grouped.tb_s END AS tb_s,
    grouped.arch,
    grouped.roofline_pct,
    grouped.bound,
    grouped.why
FROM grouped
LEFT JOIN _phase_steps AS phases
    ON phases.trace_id = grouped.trace_id
    AND phases.phase = grouped.phase
    AND phases.region_id IS NOT DISTINCT FROM grouped.region_id;
