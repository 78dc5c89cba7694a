-- GPU time of a trace by category of op.
--
-- grain:   one row per (category)
-- reads:   op_categories, roofline_categories
-- columns:
--   category        VARCHAR  -         of the op; `launch`: a call outside any op; `(no op)`
--   gpu_time_ns     BIGINT   ns        union of the activities that they launched, per call, summed
--   share_pct       DOUBLE   pct       share of the trace's GPU time
--   cumulative_pct  DOUBLE   pct       share of this row and those before it
--   count           BIGINT   -         calls that launched GPU work
--   kernel_count    BIGINT   -         GPU activities
--   modelled_ns     BIGINT   ns        time of its calls whose FLOPs and bytes are known
--   roofline_pct    DOUBLE   pct       least time on the device of the time, where both are known
--   tflops_s        DOUBLE   TFLOPS/s  FLOPs of modelled calls a second of their time
--   tb_s            DOUBLE   TB/s      bytes of modelled calls a second of their time
--   host_time_ns    BIGINT   ns        host time of the calls
SELECT
    times.category,
    times.direct_kernel_time_ns AS gpu_time_ns,
    times.pct AS share_pct,
    times.cumulative_pct,
    times.count,
    times.kernel_count,
    limits.modelled_ns,
    limits.roofline_pct,
    limits.tflops_s,
    limits.tb_s,
    times.host_time_ns
FROM op_categories AS times
LEFT JOIN roofline_categories AS limits
    ON limits.trace_id = times.trace_id
    AND limits.category = times.category
WHERE times.trace_id = $trace_id
ORDER BY times.direct_kernel_time_ns DESC, times.category;
