-- The runs that a gate looks at, newest first.
--
-- grain:   one row per (run_id)
-- reads:   runs, _gate_runs
-- columns:
--   run_id       VARCHAR  -  trace_id of the first trace of the run
--   side         VARCHAR  -  newest, baseline or unusable
--   path         VARCHAR  -  file of its first trace
--   recorded_at  VARCHAR  -  when it was recorded, in UTC
--   time_source  VARCHAR  -  recorded, file or analysed: what recorded_at is
--   status       VARCHAR  -  the worst of its traces
--   reason       VARCHAR  -  why it is not good; NULL if it is
--   arch         VARCHAR  -  device of its traces
--   traces       BIGINT   -  traces of the run
--   per          VARCHAR  -  step or trace: what sums are divided by
-- notes:
--   Times are to the second.
SELECT
    runs.run_id,
    _gate_runs.side,
    runs.path,
    strftime(runs.run_time AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS recorded_at,
    runs.time_source,
    runs.status,
    runs.reason,
    runs.arch,
    runs.traces,
    runs.per
FROM _gate_runs
JOIN runs USING (run_id)
ORDER BY
    _gate_runs.side <> 'unusable',
    _gate_runs.side <> 'newest',
    runs.run_time DESC,
    runs.run_id;
