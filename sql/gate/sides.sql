-- The runs of a gate: those before the newest, or those of another label or run.
--
-- grain:   one row per (label, run_id)
-- reads:   _own_gate_runs, _gate_settings, job_runs
-- columns:
--   label   VARCHAR  -  the label that is judged
--   run_id  VARCHAR  -  a run
--   side    VARCHAR  -  newest, baseline; or unusable: the newest run was not read whole
-- notes:
--   Rows as in _gate_runs. A label or run that is named may be of another device.
WITH
    named AS (
        SELECT
            job_runs.run_id,
            row_number() OVER (ORDER BY job_runs.position, job_runs.run_id) AS place
        FROM job_runs
        JOIN job_runs AS newest
            ON newest.label = $label
            AND newest.position = 1
            AND newest.per = job_runs.per
        ANTI JOIN (
            SELECT run_id FROM _own_gate_runs WHERE label = $label AND side <> 'baseline'
        ) AS judged ON judged.run_id = job_runs.run_id
        WHERE job_runs.is_good
            AND (job_runs.label = $other_label OR job_runs.run_id = $other_run)
    )
SELECT
    label,
    run_id,
    side
FROM _own_gate_runs
WHERE label = $label
    AND (side <> 'baseline' OR coalesce($other_label, $other_run) IS NULL)
UNION ALL
SELECT
    $label AS label,
    named.run_id,
    'baseline' AS side
FROM named
CROSS JOIN _gate_settings AS settings
WHERE named.place <= settings.baseline_runs;
