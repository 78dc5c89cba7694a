-- Steps of a trace: what ran in each and for how long.
--
-- grain:   one row per (step_id)
-- reads:   steps
-- columns:
--   step_id              BIGINT   -   0, 1, 2 … in order of time
--   phase                VARCHAR  -   prefill, decode, mixed, idle, diffusion, training or other
--   r                    BIGINT   -   requests
--   context_requests     BIGINT   -   of these in prefill
--   generation_requests  BIGINT   -   of these in decode
--   tokens               BIGINT   -   query tokens of all requests
--   host_ns              BIGINT   ns  length on the host
--   gpu_busy_ns          BIGINT   ns  time with any GPU activity of the step
--   gpu_span_ns          BIGINT   ns  first start to last end of its GPU activities
--   gap_before_ns        BIGINT   ns  end of the step before on the host to its start
--   tokens_per_s         DOUBLE   -   tokens a second of gpu_span_ns
--   kernels              BIGINT   -   its GPU activities
--   graph                VARCHAR  -   full, piecewise or eager
--   name                 VARCHAR  -   the wording
SELECT
    step_id,
    phase,
    r,
    r_c AS context_requests,
    r_g AS generation_requests,
    tokens,
    cpu_dur_ns AS host_ns,
    gpu_busy_ns,
    gpu_span_ns,
    gap_before_ns,
    tokens_per_s,
    kernels,
    graph,
    annotation AS name
FROM steps
WHERE trace_id = $trace_id
ORDER BY step_id;
