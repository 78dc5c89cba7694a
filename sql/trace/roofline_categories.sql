-- Work, time and distance from the roofline by category of op.
--
-- grain:   one row per (trace_id, category)
-- reads:   coverage, op_perf
-- columns:
--   trace_id         VARCHAR  -           the trace
--   category         VARCHAR  -           category of the ops
--   count            BIGINT   -           calls
--   kernel_time_ns   BIGINT   ns          union of their activities, per call, summed
--   pct              DOUBLE   pct         share of all GPU time of the trace; NULL if none
--   modelled_ns      BIGINT   ns          time of the calls whose FLOPs and bytes are known
--   flops            BIGINT   flops       of these calls
--   bytes            BIGINT   bytes       of these calls
--   flops_per_byte   DOUBLE   flops/byte  flops / bytes
--   tflops_s         DOUBLE   TFLOPS/s    flops / modelled_ns
--   tb_s             DOUBLE   TB/s        bytes / modelled_ns
--   limited_ns       BIGINT   ns          time of the calls that have a roofline
--   roofline_ns      DOUBLE   ns          least time of these calls on the device
--   roofline_pct     DOUBLE   pct         roofline_ns / limited_ns: weighted by time
--   compute_pct      DOUBLE   pct         flops at the peak / limited_ns: use of the units
--   memory_pct       DOUBLE   pct         bytes at the bandwidth / limited_ns: use of the memory
-- notes:
--   The counted rows of op_perf. Calls whose work is unknown are in kernel_time_ns only.
CREATE OR REPLACE VIEW roofline_categories AS
WITH
    known AS (
        SELECT
            trace_id,
            category,
            kernel_time_ns,
            flops,
            bytes,
            flops IS NOT NULL AND bytes IS NOT NULL AS is_known,
            roofline_ns,
            CASE
                WHEN roofline_ns IS NOT NULL THEN coalesce(flops / (1000.0 * peak_tflops), 0.0)
            END AS compute_ns,
            CASE WHEN roofline_ns IS NOT NULL THEN bytes / (1000.0 * peak_tb_s) END AS memory_ns
        FROM op_perf
        WHERE counted
    ),
    grouped AS (
        SELECT
            trace_id,
            category,
            count(*) AS count,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            TRY_CAST(coalesce(sum(kernel_time_ns) FILTER (WHERE is_known), 0) AS BIGINT)
                AS modelled_ns,
            TRY_CAST(sum(flops) FILTER (WHERE is_known) AS BIGINT) AS flops,
            TRY_CAST(sum(bytes) FILTER (WHERE is_known) AS BIGINT) AS bytes,
            TRY_CAST(
                coalesce(sum(kernel_time_ns) FILTER (WHERE roofline_ns IS NOT NULL), 0) AS BIGINT
            ) AS limited_ns,
            round(sum(roofline_ns), 6) AS roofline_ns,
            round(sum(compute_ns), 6) AS compute_ns,
            round(sum(memory_ns), 6) AS memory_ns
        FROM known
        GROUP BY trace_id, category
    )
SELECT
    trace_id,
    category,
    count,
    kernel_time_ns,
    100.0::DOUBLE * kernel_time_ns / nullif(op_time_ns + no_op_ns, 0) AS pct,
    grouped.modelled_ns,
    flops,
    bytes,
    flops::DOUBLE / nullif(bytes, 0) AS flops_per_byte,
    flops / (1000.0::DOUBLE * nullif(grouped.modelled_ns, 0)) AS tflops_s,
    bytes / (1000.0::DOUBLE * nullif(grouped.modelled_ns, 0)) AS tb_s,
    limited_ns,
    roofline_ns,
    100.0::DOUBLE * roofline_ns / nullif(limited_ns, 0) AS roofline_pct,
    100.0::DOUBLE * compute_ns / nullif(limited_ns, 0) AS compute_pct,
    100.0::DOUBLE * memory_ns / nullif(limited_ns, 0) AS memory_pct
FROM grouped
JOIN coverage USING (trace_id);
