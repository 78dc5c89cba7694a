-- Runs of each job in order of time: what trends and the gate compare.
--
-- grain:   one row per (run_id)
-- reads:   _trace_runs, traces, step_summary
-- columns:
--   run_id       VARCHAR      -  trace_id of the first trace of the run
--   label        VARCHAR      -  label of the job; NULL if no file names the trace
--   position     BIGINT       -  1 is the newest run of the label, 2 the one before
--   run_time     TIMESTAMPTZ  -  when it was recorded, see time_source
--   time_source  VARCHAR      -  recorded, file or analysed: what run_time is
--   path         VARCHAR      -  file of the first trace
--   traces       BIGINT       -  traces of the run: one a rank
--   status       VARCHAR      -  the worst of its traces: ok, repaired, partial …
--   is_good      BOOLEAN      -  whether all of its traces were read whole
--   reason       VARCHAR      -  why it is not good; NULL if it is
--   arch         VARCHAR      -  device of its traces; NULL if unknown or several
--   steps        BIGINT       -  steps of its traces that are not idle, summed
--   per          VARCHAR      -  step or trace: what sums of the run are divided by
--   divisor      BIGINT       -  how many of those it has
-- notes:
--   Runs, and which time is taken, are as in the column run_time: the clock of the trace, else
--   when the file was last changed, else when it was analysed. Ranks of one job whose recorded
--   times touch are one run; a file that was rejected is a run of its own. per is step if every
--   trace of the run has steps.
CREATE OR REPLACE VIEW job_runs AS
WITH
    stepped AS (
        SELECT
            trace_id,
            CAST(sum(steps) FILTER (WHERE phase IS DISTINCT FROM 'idle') AS BIGINT) AS steps
        FROM step_summary
        GROUP BY trace_id
    ),
    grouped AS (
        SELECT
            _trace_runs.run_id,
            _trace_runs.label,
            min(_trace_runs.run_time) AS run_time,
            arg_min(_trace_runs.time_source, _trace_runs.run_time) AS time_source,
            min(traces.path) FILTER (WHERE traces.trace_id = _trace_runs.run_id) AS path,
            count(*) AS traces,
            max(
                CASE traces.status
                    WHEN 'ok' THEN 0 WHEN 'repaired' THEN 1 WHEN 'partial' THEN 2 ELSE 3
                END
            ) AS worst,
            min(traces.reason) FILTER (WHERE traces.status NOT IN ('ok', 'repaired')) AS reason,
            CASE
                WHEN count(DISTINCT traces.arch) = 1 AND count(traces.arch) = count(*)
                    THEN min(traces.arch)
            END AS arch,
            CAST(coalesce(sum(stepped.steps), 0) AS BIGINT) AS steps,
            min(coalesce(stepped.steps, 0)) > 0 AS is_stepped
        FROM _trace_runs
        JOIN traces USING (trace_id)
        LEFT JOIN stepped USING (trace_id)
        GROUP BY _trace_runs.run_id, _trace_runs.label
    )
SELECT
    run_id,
    label,
    row_number() OVER (
        PARTITION BY label
        ORDER BY run_time DESC NULLS LAST, worst DESC, run_id
    ) AS position,
    run_time,
    time_source,
    path,
    traces,
    CASE worst WHEN 0 THEN 'ok' WHEN 1 THEN 'repaired' WHEN 2 THEN 'partial' ELSE 'rejected' END
        AS status,
    worst < 2 AS is_good,
    reason,
    arch,
    steps,
    CASE WHEN is_stepped THEN 'step' ELSE 'trace' END AS per,
    CASE WHEN is_stepped THEN steps ELSE traces END AS divisor
FROM grouped;
