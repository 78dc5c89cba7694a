-- Compiled kernels by name and inputs: what a launch did, and how fast over all launches.
--
-- grain:   one row per (trace_id, name, signature_id, kernel_hash)
-- reads:   triton_kernels, signatures
-- columns:
--   trace_id          VARCHAR    -           the trace
--   name              VARCHAR    -           name of the kernel
--   signature_id      BIGINT     -           its inputs; NULL if none recorded
--   kernel_hash       VARCHAR    -           hash of its file; NULL if none recorded
--   kind              VARCHAR    -           as in triton_kernels
--   aten_ops          VARCHAR[]  -           ops that it fused; NULL if no name tells
--   input_dims        VARCHAR    -           shape per input, as text
--   input_types       VARCHAR    -           type per input, as text
--   xnumel            BIGINT     -           product of the dimensions that are kept
--   rnumel            BIGINT     -           product of the dimensions that are reduced
--   elements          BIGINT     -           of a launch
--   count             BIGINT     -           launches
--   timed             BIGINT     -           of these, launches that have GPU activities
--   kernel_count      BIGINT     -           GPU activities
--   kernel_time_ns    BIGINT     ns          union of these activities, per launch, summed
--   mean_ns           DOUBLE     ns          mean time of a launch that has activities
--   median_ns         DOUBLE     ns          median of these times
--   min_ns            BIGINT     ns          the shortest of them
--   max_ns            BIGINT     ns          the longest of them
--   flops             DOUBLE     flops       mean of a launch; NULL if that of one is unknown
--   bytes             DOUBLE     bytes       mean of a launch; NULL if those of one are unknown
--   bytes_min         DOUBLE     bytes       mean of the least that it can be
--   flops_seed        DOUBLE     flops       mean by the published formula
--   bytes_seed        DOUBLE     bytes       mean by the published formula
--   flops_is_partial  BOOLEAN    -           whether flops is a lower bound
--   gflops            DOUBLE     GFLOP       flops / 10^9
--   data_moved_mib    DOUBLE     MiB         bytes / 2^20
--   flops_per_byte    DOUBLE     flops/byte  flops / bytes
--   tflops_s          DOUBLE     TFLOPS/s    work of all launches with activities / their time
--   tb_s              DOUBLE     TB/s        bytes of all launches with activities / their time
--   arch              VARCHAR    -           device whose peaks are used; NULL if it is not known
--   roofline_pct      DOUBLE     pct         their least times on the device / their time
--   bound             VARCHAR    -           compute or memory: what bounds a launch
--   bytes_basis       VARCHAR    -           as in triton_kernels
--   in_place          VARCHAR    -           as in triton_kernels
--   sizes             VARCHAR    -           as in triton_kernels
--   source            VARCHAR    -           as in triton_kernels
--   check             VARCHAR    -           grid_mismatch if that of one is
--   why               VARCHAR    -           why something is NULL
-- notes:
--   A name is used again by every graph of a process, for other code: one name may have several
--   rows. Launches that were recorded while a graph was captured, or on a machine without GPU rows,
--   have no activities: they count, without time.
CREATE OR REPLACE VIEW triton_summary AS
WITH
    grouped AS (
        SELECT
            trace_id,
            name,
            signature_id,
            kernel_hash,
            min(kind) AS kind,
            min(aten_ops) AS aten_ops,
            max(xnumel) AS xnumel,
            max(rnumel) AS rnumel,
            max(elements) AS elements,
            count(*) AS count,
            count(kernel_time_ns) AS timed,
            TRY_CAST(sum(kernel_count) AS BIGINT) AS kernel_count,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(kernel_time_ns) AS mean_ns,
            median(kernel_time_ns) AS median_ns,
            min(kernel_time_ns) AS min_ns,
            max(kernel_time_ns) AS max_ns,
            CASE WHEN count(flops) = count(*) THEN avg(flops) END AS flops,
            CASE WHEN count(bytes) = count(*) THEN avg(bytes) END AS bytes,
            CASE WHEN count(bytes_min) = count(*) THEN avg(bytes_min) END AS bytes_min,
            CASE WHEN count(flops_seed) = count(*) THEN avg(flops_seed) END AS flops_seed,
            CASE WHEN count(bytes_seed) = count(*) THEN avg(bytes_seed) END AS bytes_seed,
            bool_or(flops_is_partial) AS flops_is_partial,
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
            min(bytes_basis) AS bytes_basis,
            min(in_place) AS in_place,
            min(sizes) AS sizes,
            min(source) AS source,
            CASE
                WHEN bool_or("check" = 'grid_mismatch') THEN 'grid_mismatch'
                ELSE min("check")
            END AS "check",
            min(why) AS why
        FROM triton_kernels
        GROUP BY trace_id, name, signature_id, kernel_hash
    )
SELECT
    grouped.trace_id,
    grouped.name,
    grouped.signature_id,
    grouped.kernel_hash,
    grouped.kind,
    grouped.aten_ops,
    CAST(signatures.input_dims AS VARCHAR) AS input_dims,
    CAST(signatures.input_types AS VARCHAR) AS input_types,
    grouped.xnumel,
    grouped.rnumel,
    grouped.elements,
    grouped.count,
    grouped.timed,
    grouped.kernel_count,
    grouped.kernel_time_ns,
    grouped.mean_ns,
    grouped.median_ns,
    grouped.min_ns,
    grouped.max_ns,
    grouped.flops,
    grouped.bytes,
    grouped.bytes_min,
    grouped.flops_seed,
    grouped.bytes_seed,
    grouped.flops_is_partial,
    grouped.flops / 1e9::DOUBLE AS gflops,
    grouped.bytes / 1048576.0::DOUBLE AS data_moved_mib,
    grouped.flops / nullif(grouped.bytes, 0) AS flops_per_byte,
    CASE WHEN grouped.flops IS NOT NULL THEN grouped.tflops_s END AS tflops_s,
    CASE WHEN grouped.bytes IS NOT NULL THEN grouped.tb_s END AS tb_s,
    grouped.arch,
    grouped.roofline_pct,
    grouped.bound,
    grouped.bytes_basis,
    grouped.in_place,
    grouped.sizes,
    grouped.source,
    grouped."check",
    grouped.why
FROM grouped
LEFT JOIN signatures
    ON signatures.trace_id = grouped.trace_id
    AND signatures.signature_id = grouped.signature_id;
