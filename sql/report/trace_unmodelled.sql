-- Ops of a trace whose FLOPs or bytes are not known, longest first.
--
-- grain:   one row per (op)
-- reads:   coverage
-- columns:
--   op           VARCHAR  -    the op
--   gpu_time_ns  BIGINT   ns   its GPU time
--   share_pct    DOUBLE   pct  of the time of recorded op calls
--   why          VARCHAR  -    why they are not known
-- notes:
--   The ten longest.
SELECT
    unnest(unmodelled_names) AS op,
    unnest(unmodelled_names_ns) AS gpu_time_ns,
    100.0::DOUBLE * unnest(unmodelled_names_ns) / nullif(op_time_ns, 0) AS share_pct,
    unnest(unmodelled_why) AS why
FROM coverage
WHERE trace_id = $trace_id
ORDER BY gpu_time_ns DESC, op;
