-- Every trace of a warehouse, or of one label.
--
-- grain:   one row per (trace_id)
-- reads:   checks, coverage, roofline_categories, trace_timeline, traces
-- columns:
--   trace               VARCHAR  -    name of its file
--   label               VARCHAR  -    job that it belongs to
--   status              VARCHAR  -    ok, repaired, partial or rejected
--   failing             BIGINT   -    checks that it fails
--   kernels             BIGINT   -    GPU kernels
--   total_ns            BIGINT   ns   first start to last end on the GPU
--   busy_pct            DOUBLE   pct  time with any GPU activity, of the total
--   computation_pct     DOUBLE   pct  time with compute or memset activity
--   exposed_comm_pct    DOUBLE   pct  time with communication and no computation
--   exposed_memcpy_pct  DOUBLE   pct  time with a copy and neither
--   modelled_pct        DOUBLE   pct  time of calls of known work, of that of recorded ops
--   roofline_pct        DOUBLE   pct  least time on the device of the time, where both are known
--   device              VARCHAR  -    device that ran the work, where all agree
--   framework           VARCHAR  -    what the trace says of its producer
--   rank                BIGINT   -    rank; NULL if unknown
--   events              BIGINT   -    events read
--   trace_id            VARCHAR  -    the trace
--   path                VARCHAR  -    file that holds it
SELECT
    regexp_extract(traces.path, '[^/]*$') AS trace,
    traces.label,
    traces.status,
    coalesce(failed.failing, 0) AS failing,
    traces.kernels,
    timeline.total_ns,
    timeline.busy_pct,
    timeline.computation_pct,
    timeline.exposed_comm_pct,
    timeline.exposed_memcpy_pct,
    coverage.modelled_pct,
    100.0::DOUBLE * limits.roofline_ns / nullif(limits.limited_ns, 0) AS roofline_pct,
    traces.arch AS device,
    traces.framework,
    traces.rank,
    traces.events,
    traces.trace_id,
    traces.path
FROM traces
LEFT JOIN trace_timeline AS timeline
    ON timeline.trace_id = traces.trace_id
    AND traces.gpu_events > 0
LEFT JOIN coverage ON coverage.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        sum(limited_ns) AS limited_ns,
        sum(roofline_ns) AS roofline_ns
    FROM roofline_categories
    GROUP BY trace_id
) AS limits ON limits.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        count(*) AS failing
    FROM checks
    WHERE NOT ok
    GROUP BY trace_id
) AS failed ON failed.trace_id = traces.trace_id
WHERE $label IS NULL
    OR traces.label = $label
ORDER BY traces.label NULLS LAST, traces.path, traces.trace_id;
