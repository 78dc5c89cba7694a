-- The runs that a gate looks at, newest first.
--
-- grain:   one row per (run_id)
-- reads:   job_runs, _gate_runs
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
    job_runs.run_id,
    _gate_runs.side,
    job_runs.path,
    strftime(job_runs.run_time AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS recorded_at,
    job_runs.time_source,
    job_runs.status,
    job_runs.reason,
    job_runs.arch,
    job_runs.traces,
    job_runs.per
FROM _gate_runs
JOIN job_runs USING (run_id)
ORDER BY
    _gate_runs.side <> 'unusable',
    _gate_runs.side <> 'newest',
    job_runs.run_time DESC,
    job_runs.run_id;
