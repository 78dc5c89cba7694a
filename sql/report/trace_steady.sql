-- Steady regions of a trace.
--
-- grain:   one row per (region_id)
-- reads:   steady_state
-- columns:
--   region_id    BIGINT   -  0, 1, 2 …
--   kind         VARCHAR  -  mixed, decode or prefill; ramp_up or ramp_down
--   first_step   BIGINT   -  first step
--   last_step    BIGINT   -  last step: it belongs to the region
--   steps        BIGINT   -  steps of its process from the first to the last
--   concurrency  BIGINT   -  requests that run
--   rule         VARCHAR  -  found, in the requests; or analytic, from --conc, --osl, --r
--   is_steady    BOOLEAN  -  whether it is steady: no ramp
--   fallback     BOOLEAN  -  whether no steady run was found: a part was taken instead
SELECT
    region_id,
    kind,
    first_step,
    last_step,
    steps,
    concurrency,
    rule,
    kind NOT IN ('ramp_up', 'ramp_down') AS is_steady,
    fallback
FROM steady_state
WHERE trace_id = $trace_id
ORDER BY region_id;
