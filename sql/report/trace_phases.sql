-- Step time of a trace by phase and number of requests.
--
-- grain:   one row per (phase, r)
-- reads:   step_summary
-- columns:
--   phase            VARCHAR  -    prefill, decode, mixed, idle, diffusion, training or other
--   r                BIGINT   -    requests of each step; NULL if unknown
--   steps            BIGINT   -    steps of that phase and so many requests
--   host_median_ns   DOUBLE   ns   length on the host: median
--   gpu_median_ns    DOUBLE   ns   time with any GPU activity of the step: median
--   gpu_p95_ns       DOUBLE   ns   its 95th percentile
--   gpu_busy_pct     DOUBLE   pct  busy time of these steps of their spans on the GPU
--   gap_median_ns    DOUBLE   ns   end of the step before on the host to the start: median
--   tokens           BIGINT   -    query tokens of these steps
--   tokens_per_s     DOUBLE   -    tokens a second of the spans of those steps
--   over_decode_pct  DOUBLE   pct  gpu_median_ns of a mixed step over that of such a decode
SELECT
    phase,
    r,
    steps,
    cpu_median_ns AS host_median_ns,
    gpu_median_ns,
    gpu_p95_ns,
    gpu_busy_pct,
    gap_median_ns,
    tokens,
    tokens_per_s,
    over_decode_pct
FROM step_summary
WHERE trace_id = $trace_id
ORDER BY phase, r NULLS LAST;
