-- What the kernels of torch.compile did.
--
-- grain:   one row per (kernel, signature_id, kernel_hash)
-- reads:   triton_summary
-- columns:
--   kernel          VARCHAR  -           name of the kernel
--   gflops          DOUBLE   GFLOP       of a launch; NULL if unknown
--   data_moved_mib  DOUBLE   MiB         memory traffic of a launch; NULL if unknown
--   flops_per_byte  DOUBLE   flops/byte  arithmetic intensity
--   tb_s            DOUBLE   TB/s        achieved
--   tflops_s        DOUBLE   TFLOPS/s    achieved
--   count           BIGINT   -           launches
--   gpu_time_ns     BIGINT   ns          union of the activities, per launch, summed
--   mean_ns         DOUBLE   ns          mean of a launch that has activities
--   roofline_pct    DOUBLE   pct         least time on the device of the time
--   bound           VARCHAR  -           compute or memory: what bounds a launch
--   kind            VARCHAR  -           poi pointwise, red, per reduction, tem template, …
--   ops             VARCHAR  -           ops that it fused
--   shapes          VARCHAR  -           shape per input
--   source          VARCHAR  -           what the numbers come from
--   why             VARCHAR  -           why something is NULL
--   signature_id    VARCHAR  -           its inputs, as in signatures; NULL if none recorded
--   kernel_hash     VARCHAR  -           hash of its file; NULL if none recorded
SELECT
    name AS kernel,
    gflops,
    data_moved_mib,
    flops_per_byte,
    tb_s,
    tflops_s,
    count,
    kernel_time_ns AS gpu_time_ns,
    mean_ns,
    roofline_pct,
    bound,
    kind,
    array_to_string(aten_ops, ', ') AS ops,
    input_dims AS shapes,
    source,
    why,
    CAST(signature_id AS VARCHAR) AS signature_id,
    kernel_hash
FROM triton_summary
WHERE trace_id = $trace_id
ORDER BY kernel_time_ns DESC NULLS LAST, name, triton_summary.signature_id, kernel_hash;
