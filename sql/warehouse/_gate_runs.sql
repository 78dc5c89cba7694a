-- Which runs of each label are judged, and which they are compared with.
--
-- grain:   one row per (label, run_id)
-- reads:   job_runs, _gate_settings
-- columns:
--   label   VARCHAR  -  the label that is judged; NULL if no file names the trace
--   run_id  VARCHAR  -  a run
--   side    VARCHAR  -  newest, baseline; or unusable: the newest run was not read whole
-- notes:
--   Runs that were not read whole are no baseline, nor are those of another device, another number
--   of traces, or with steps where the newest has none. If the newest run was not read whole,
--   there is nothing to judge: that is its label's only row.
CREATE OR REPLACE VIEW _gate_runs AS
WITH
    comparable AS (
        SELECT
            job_runs.label,
            job_runs.run_id,
            row_number() OVER (PARTITION BY job_runs.label ORDER BY job_runs.position) AS place
        FROM job_runs
        JOIN job_runs AS newest
            ON newest.label IS NOT DISTINCT FROM job_runs.label
            AND newest.position = 1
            AND newest.arch IS NOT DISTINCT FROM job_runs.arch
            AND newest.traces = job_runs.traces
            AND newest.per = job_runs.per
        WHERE newest.is_good
            AND job_runs.is_good
    )
SELECT
    comparable.label,
    comparable.run_id,
    CASE WHEN comparable.place <= settings.newest_runs THEN 'newest' ELSE 'baseline' END AS side
FROM comparable
CROSS JOIN _gate_settings AS settings
WHERE comparable.place <= settings.newest_runs + settings.baseline_runs
UNION ALL
SELECT
    label,
    run_id,
    'unusable' AS side
FROM job_runs
WHERE position = 1
    AND NOT is_good;
