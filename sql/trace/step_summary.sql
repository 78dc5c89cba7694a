-- Steps by phase and batch size: how long they take, how busy the GPU is, what they yield.
--
-- grain:   one row per (trace_id, phase, r)
-- reads:   steps
-- columns:
--   trace_id          VARCHAR  -    trace the row belongs to
--   phase             VARCHAR  -    prefill, decode, mixed, idle, diffusion, training or other
--   r                 BIGINT   -    requests of each step; NULL if unknown
--   steps             BIGINT   -    steps of that phase and so many requests
--   cpu_mean_ns       DOUBLE   ns   length of the annotation on the host: mean
--   cpu_median_ns     DOUBLE   ns   its median
--   cpu_p95_ns        DOUBLE   ns   its 95th percentile
--   gpu_mean_ns       DOUBLE   ns   time with any GPU activity of the step: mean
--   gpu_median_ns     DOUBLE   ns   its median
--   gpu_p95_ns        DOUBLE   ns   its 95th percentile
--   span_median_ns    DOUBLE   ns   first start to last end on the GPU: median
--   gpu_busy_pct      DOUBLE   pct  busy time of these steps of their spans on the GPU
--   gap_mean_ns       DOUBLE   ns   end of the step before on the host to the start: mean
--   gap_median_ns     DOUBLE   ns   its median
--   gap_p95_ns        DOUBLE   ns   its 95th percentile
--   tokens            BIGINT   -    query tokens of these steps; NULL if of none they are known
--   tokens_per_s      DOUBLE   -    tokens a second of the spans of those steps
--   over_decode_pct   DOUBLE   pct  gpu_median_ns of a mixed step over that of decode with equal r
-- notes:
--   over_decode_pct is what a prefill costs the requests that decode beside it: 0 is nothing, 100
--   that their step takes twice the time. Percentiles are interpolated.
CREATE OR REPLACE VIEW step_summary AS
WITH
    grouped AS (
        SELECT
            trace_id,
            phase,
            r,
            count(*) AS steps,
            avg(cpu_dur_ns) AS cpu_mean_ns,
            CAST(quantile_cont(cpu_dur_ns, 0.5) AS DOUBLE) AS cpu_median_ns,
            CAST(quantile_cont(cpu_dur_ns, 0.95) AS DOUBLE) AS cpu_p95_ns,
            avg(gpu_busy_ns) AS gpu_mean_ns,
            CAST(quantile_cont(gpu_busy_ns, 0.5) AS DOUBLE) AS gpu_median_ns,
            CAST(quantile_cont(gpu_busy_ns, 0.95) AS DOUBLE) AS gpu_p95_ns,
            CAST(quantile_cont(gpu_span_ns, 0.5) AS DOUBLE) AS span_median_ns,
            sum(gpu_span_ns) AS span_ns,
            sum(gpu_busy_ns) AS busy_ns,
            avg(gap_before_ns) AS gap_mean_ns,
            CAST(quantile_cont(gap_before_ns, 0.5) AS DOUBLE) AS gap_median_ns,
            CAST(quantile_cont(gap_before_ns, 0.95) AS DOUBLE) AS gap_p95_ns,
            TRY_CAST(sum(tokens) AS BIGINT) AS tokens,
            1e9::DOUBLE * sum(tokens) FILTER (WHERE gpu_span_ns > 0)
            / sum(gpu_span_ns) FILTER (WHERE tokens IS NOT NULL AND gpu_span_ns > 0)
                AS tokens_per_s
        FROM steps
        GROUP BY trace_id, phase, r
    )
SELECT
    grouped.trace_id,
    grouped.phase,
    grouped.r,
    grouped.steps,
    grouped.cpu_mean_ns,
    grouped.cpu_median_ns,
    grouped.cpu_p95_ns,
    grouped.gpu_mean_ns,
    grouped.gpu_median_ns,
    grouped.gpu_p95_ns,
    grouped.span_median_ns,
    100.0::DOUBLE * grouped.busy_ns / nullif(grouped.span_ns, 0) AS gpu_busy_pct,
    grouped.gap_mean_ns,
    grouped.gap_median_ns,
    grouped.gap_p95_ns,
    grouped.tokens,
    grouped.tokens_per_s,
    CASE
        WHEN grouped.phase = 'mixed'
            THEN 100.0::DOUBLE * grouped.gpu_median_ns / nullif(decode.gpu_median_ns, 0) - 100
    END AS over_decode_pct
FROM grouped
LEFT JOIN grouped AS decode
    ON decode.trace_id = grouped.trace_id
    AND decode.r = grouped.r
    AND decode.phase = 'decode';
