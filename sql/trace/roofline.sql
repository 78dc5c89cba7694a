-- Distance from the roofline by op and inputs: the table to look at first.
--
-- grain:   one row per (trace_id, name, signature_id, compute_spec)
-- reads:   coverage, op_perf, signatures
-- columns:
--   trace_id         VARCHAR  -           the trace
--   name             VARCHAR  -           the op
--   signature_id     BIGINT   -           its inputs; NULL if none recorded
--   compute_spec     VARCHAR  -           the peak that bounds it, e.g. matrix_bf16; NULL if none
--   category         VARCHAR  -           category of the op
--   family           VARCHAR  -           which formula it has
--   input_dims       VARCHAR  -           shape per input, as text
--   input_types      VARCHAR  -           type per input, as text
--   params           VARCHAR  -           what the formula took from the inputs, as JSON
--   dtype            VARCHAR  -           type of element that the peak is taken of
--   count            BIGINT   -           calls
--   kernel_count     BIGINT   -           GPU activities of the calls
--   kernel_time_ns   BIGINT   ns          union of these activities, per call, summed
--   pct              DOUBLE   pct         share of all GPU time of the trace; NULL if none
--   cumulative_pct   DOUBLE   pct         pct of this row and those before it, longest time first
--   mean_ns          DOUBLE   ns          mean time of a call
--   flops            BIGINT   flops       of all calls; NULL if unknown
--   bytes            BIGINT   bytes       of all calls; NULL if unknown
--   mean_flops       DOUBLE   flops       mean of a call
--   mean_bytes       DOUBLE   bytes       mean of a call
--   flops_per_byte   DOUBLE   flops/byte  flops / bytes
--   tflops_s         DOUBLE   TFLOPS/s    flops / kernel_time_ns
--   tb_s             DOUBLE   TB/s        bytes / kernel_time_ns
--   arch             VARCHAR  -           device whose peaks are used; NULL if it is not known
--   peak_tflops      DOUBLE   TFLOPS/s    its peak of compute_spec; NULL if not known
--   peak_tb_s        DOUBLE   TB/s        bandwidth of its memory
--   roofline_ns      DOUBLE   ns          least time on the device, of all calls; NULL if unknown
--   roofline_pct     DOUBLE   pct         roofline_ns / kernel_time_ns: 100 is at the limit
--   bound            VARCHAR  -           compute or memory: what bounds a call; NULL if unknown
--   why              VARCHAR  -           why flops, bytes or the roofline are NULL
--   note             VARCHAR  -           what explains a roofline_pct above 105
-- notes:
--   The counted rows of op_perf, so that no time is in two rows. Sums over sums: a rate is the work
--   of all calls over the time of all calls. If the work of some calls is unknown, so is the sum.
CREATE OR REPLACE VIEW roofline AS
WITH
    grouped AS (
        SELECT
            trace_id,
            name,
            signature_id,
            compute_spec,
            min(category) AS category,
            min(family) AS family,
            min(params) AS params,
            min(dtype) AS dtype,
            count(*) AS count,
            TRY_CAST(sum(kernel_count) AS BIGINT) AS kernel_count,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(kernel_time_ns) AS mean_ns,
            CASE WHEN count(flops) = count(*) THEN TRY_CAST(sum(flops) AS BIGINT) END AS flops,
            CASE WHEN count(bytes) = count(*) THEN TRY_CAST(sum(bytes) AS BIGINT) END AS bytes,
            min(arch) AS arch,
            min(peak_tflops) AS peak_tflops,
            min(peak_tb_s) AS peak_tb_s,
            CASE
                WHEN count(roofline_ns) = count(*) THEN round(sum(roofline_ns), 6)
            END AS roofline_ns,
            CASE WHEN count(roofline_ns) = count(*) THEN min(bound) END AS bound,
            min(why) AS why,
            min(note) AS note
        FROM op_perf
        WHERE counted
        GROUP BY trace_id, name, signature_id, compute_spec
    ),
    ranked AS (
        SELECT
            grouped.*,
            nullif(coverage.op_time_ns + coverage.no_op_ns, 0) AS trace_time_ns,
            sum(grouped.kernel_time_ns) OVER (
                PARTITION BY trace_id
                ORDER BY grouped.kernel_time_ns DESC NULLS LAST, name, signature_id, compute_spec
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS cumulative_time_ns
        FROM grouped
        JOIN coverage USING (trace_id)
    )
SELECT
    ranked.trace_id,
    ranked.name,
    ranked.signature_id,
    ranked.compute_spec,
    ranked.category,
    ranked.family,
    CAST(signatures.input_dims AS VARCHAR) AS input_dims,
    CAST(signatures.input_types AS VARCHAR) AS input_types,
    ranked.params,
    ranked.dtype,
    ranked.count,
    ranked.kernel_count,
    ranked.kernel_time_ns,
    100.0::DOUBLE * ranked.kernel_time_ns / ranked.trace_time_ns AS pct,
    100.0::DOUBLE * ranked.cumulative_time_ns / ranked.trace_time_ns AS cumulative_pct,
    ranked.mean_ns,
    ranked.flops,
    ranked.bytes,
    ranked.flops::DOUBLE / ranked.count AS mean_flops,
    ranked.bytes::DOUBLE / ranked.count AS mean_bytes,
    ranked.flops::DOUBLE / nullif(ranked.bytes, 0) AS flops_per_byte,
    ranked.flops / (1000.0::DOUBLE * nullif(ranked.kernel_time_ns, 0)) AS tflops_s,
    ranked.bytes / (1000.0::DOUBLE * nullif(ranked.kernel_time_ns, 0)) AS tb_s,
    ranked.arch,
    ranked.peak_tflops,
    ranked.peak_tb_s,
    ranked.roofline_ns,
    100.0::DOUBLE * ranked.roofline_ns / nullif(ranked.kernel_time_ns, 0) AS roofline_pct,
    ranked.bound,
    ranked.why,
    CASE WHEN ranked.roofline_ns > 1.05 * ranked.kernel_time_ns THEN ranked.note END AS note
FROM ranked
LEFT JOIN signatures
    ON signatures.trace_id = ranked.trace_id
    AND signatures.signature_id = ranked.signature_id;
