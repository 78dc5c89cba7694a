-- Attention of the serving steps of a trace, against the limit of its device.
--
-- grain:   one row per (op, phase, part, heads, widths, sees, dtype, kv_bits)
-- reads:   attention_summary
-- columns:
--   op              VARCHAR  -           the op
--   phase           VARCHAR  -           of the steps; NULL if unknown
--   part            VARCHAR  -           requests it is for: all, context, generation; or NULL
--   heads           VARCHAR  -           query heads / heads of keys and values; NULL if unknown
--   widths          VARCHAR  -           width of a query / of a value; NULL if unknown
--   sees            BIGINT   -           keys that a token sees; NULL for all of its request
--   dtype           VARCHAR  -           type of the queries
--   kv_bits         BIGINT   bits        of a number in the KV cache
--   steps           BIGINT   -           steps with such a call
--   calls           BIGINT   -           calls
--   gpu_time_ns     BIGINT   ns          time of their GPU activities, summed over calls
--   mean_ns         DOUBLE   ns          mean of a call
--   flops_per_byte  DOUBLE   flops/byte  arithmetic intensity
--   tflops_s        DOUBLE   TFLOPS/s    achieved
--   tb_s            DOUBLE   TB/s        achieved
--   roofline_pct    DOUBLE   pct         least time on the device of the time: 100 is at the limit
--   bound           VARCHAR  -           compute or memory; mixed where calls differ
--   source          VARCHAR  -           where heads and widths are from
--   why             VARCHAR  -           why something is NULL, or what to know
SELECT
    name AS op,
    phase,
    part,
    h_q || ' / ' || h_kv AS heads,
    d_qk || ' / ' || d_v AS widths,
    window_keys AS sees,
    dtype,
    kv_bits,
    steps,
    calls,
    kernel_time_ns AS gpu_time_ns,
    mean_ns,
    flops_per_byte,
    tflops_s,
    tb_s,
    roofline_pct,
    bound,
    source,
    nullif(concat_ws(', ', why, note), '') AS why
FROM attention_summary
WHERE trace_id = $trace_id
ORDER BY kernel_time_ns DESC NULLS LAST, name, phase, part, heads, widths, sees, dtype, kv_bits;
