-- How far each op of a trace is from the limit of its device.
--
-- grain:   one row per (op, signature_id, compute_spec)
-- reads:   roofline
-- columns:
--   op              VARCHAR  -           the op
--   shapes          VARCHAR  -           shape per input
--   dtype           VARCHAR  -           type of element that the peak is taken of
--   gpu_time_ns     BIGINT   ns          union of the activities of its calls, per call, summed
--   share_pct       DOUBLE   pct         share of all GPU time of the trace
--   count           BIGINT   -           calls
--   mean_ns         DOUBLE   ns          mean of a call
--   flops_per_byte  DOUBLE   flops/byte  arithmetic intensity
--   tflops_s        DOUBLE   TFLOPS/s    achieved
--   tb_s            DOUBLE   TB/s        achieved
--   roofline_pct    DOUBLE   pct         least time on the device of the time: 100 is at the limit
--   bound           VARCHAR  -           compute or memory: what bounds it
--   category        VARCHAR  -           category of the op
--   params          VARCHAR  -           what the formula took from the inputs
--   mean_flops      DOUBLE   flops       of a call
--   mean_bytes      DOUBLE   bytes       of a call
--   compute_spec    VARCHAR  -           the peak that bounds it
--   why             VARCHAR  -           why something is NULL, or what explains more than 105 %
--   signature_id    VARCHAR  -           its inputs, as in signatures; NULL if none recorded
SELECT
    name AS op,
    replace(input_dims, ', []', '') AS shapes,
    dtype,
    kernel_time_ns AS gpu_time_ns,
    pct AS share_pct,
    count,
    mean_ns,
    flops_per_byte,
    tflops_s,
    tb_s,
    roofline_pct,
    bound,
    category,
    params,
    mean_flops,
    mean_bytes,
    compute_spec,
    coalesce(note, why) AS why,
    CAST(signature_id AS VARCHAR) AS signature_id
FROM roofline
WHERE trace_id = $trace_id
ORDER BY kernel_time_ns DESC, name, roofline.signature_id, compute_spec;
