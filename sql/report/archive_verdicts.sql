-- How much of the newest run of each label was judged, and how.
--
-- grain:   one row per (label)
-- reads:   regressions
-- columns:
--   label          VARCHAR  -  name of the job
--   regressions    BIGINT   -  numbers that got worse beyond the noise
--   improvements   BIGINT   -  numbers that got better beyond the noise
--   steady         BIGINT   -  numbers within the noise
--   appeared       BIGINT   -  numbers that no baseline run has
--   gone           BIGINT   -  numbers that the newest run does not have
--   too_few        BIGINT   -  numbers that too few baseline runs have
--   small          BIGINT   -  numbers of too small a share of the time to matter
--   baseline_runs  BIGINT   -  baseline runs, at most
SELECT
    label,
    count(*) FILTER (WHERE verdict = 'regression') AS regressions,
    count(*) FILTER (WHERE verdict = 'improvement') AS improvements,
    count(*) FILTER (WHERE verdict = 'steady') AS steady,
    count(*) FILTER (WHERE verdict = 'new') AS appeared,
    count(*) FILTER (WHERE verdict = 'gone') AS gone,
    count(*) FILTER (WHERE verdict = 'too_few') AS too_few,
    count(*) FILTER (WHERE verdict IN ('small', 'zero')) AS small,
    max(baseline_runs) AS baseline_runs
FROM regressions
WHERE $label IS NULL
    OR label = $label
GROUP BY label
ORDER BY regressions DESC, label NULLS LAST;
