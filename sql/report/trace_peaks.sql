-- The limits of the device of a trace, as lines over arithmetic intensity.
--
-- grain:   one row per (compute_spec, flops_per_byte)
-- reads:   roofline
-- columns:
--   compute_spec    VARCHAR  -           the peak, e.g. matrix_bf16
--   flops_per_byte  DOUBLE   flops/byte  arithmetic intensity
--   tflops_s        DOUBLE   TFLOPS/s    the most that the device can do at it
--   tb_s            DOUBLE   TB/s        bandwidth of its memory
--   ridge           DOUBLE   flops/byte  where both limits meet
--   arch            VARCHAR  -           the device
-- notes:
--   Three points a line: memory bandwidth times intensity up to the ridge, the peak beyond. The
--   lines reach a factor of two beyond the ops.
WITH
    peaks AS (
        SELECT
            compute_spec,
            any_value(arch) AS arch,
            max(peak_tflops) AS peak_tflops,
            max(peak_tb_s) AS peak_tb_s,
            max(peak_tflops) / max(peak_tb_s) AS ridge
        FROM roofline
        WHERE trace_id = $trace_id
            AND peak_tflops > 0
            AND peak_tb_s > 0
            AND flops > 0
            AND bytes > 0
        GROUP BY compute_spec
    ),
    reach AS (
        SELECT
            least(min(flops_per_byte), (SELECT min(ridge) FROM peaks)) / 2 AS least_intensity,
            greatest(max(flops_per_byte), (SELECT max(ridge) FROM peaks)) * 2 AS most_intensity
        FROM roofline
        WHERE trace_id = $trace_id
            AND flops_per_byte > 0
    ),
    points AS (
        SELECT compute_spec, arch, peak_tb_s, ridge, peak_tflops, least_intensity AS intensity
        FROM peaks
        CROSS JOIN reach
        UNION ALL
        SELECT compute_spec, arch, peak_tb_s, ridge, peak_tflops, ridge
        FROM peaks
        UNION ALL
        SELECT compute_spec, arch, peak_tb_s, ridge, peak_tflops, most_intensity
        FROM peaks
        CROSS JOIN reach
    )
SELECT
    compute_spec,
    intensity AS flops_per_byte,
    least(intensity * peak_tb_s, peak_tflops) AS tflops_s,
    peak_tb_s AS tb_s,
    ridge,
    arch
FROM points
ORDER BY compute_spec, intensity;
