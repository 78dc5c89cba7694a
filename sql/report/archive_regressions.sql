-- What changed in the newest run of each label against the runs before it.
--
-- grain:   one row per (label, metric, subject)
-- reads:   regressions
-- columns:
--   subject        VARCHAR  -    what it is of: (all), a phase, an op with its inputs, a kernel
--   metric         VARCHAR  -    what is compared, as in trends
--   verdict        VARCHAR  -    regression, improvement, new, gone, or unusable
--   change_pct     DOUBLE   pct  newest less baseline, of the baseline
--   value          DOUBLE   -    the newest, in unit
--   baseline       DOUBLE   -    median of the baseline runs, in unit
--   unit           VARCHAR  -    ns, pct or tokens/s
--   per            VARCHAR  -    step, trace or call: what value is per
--   share_pct      DOUBLE   pct  share of the time of the run
--   z              DOUBLE   -    change in units of its noise
--   z_needed       DOUBLE   -    least size of z that is beyond the noise
--   noise_pct      DOUBLE   pct  spread between runs that z is taken with
--   baseline_runs  BIGINT   -    baseline runs that have it
--   label          VARCHAR  -    name of the job
--   why            VARCHAR  -    why there is no judgement
-- notes:
--   What is steady, small or has too few runs is counted in archive_verdicts.
SELECT
    subject,
    metric,
    verdict,
    change_pct,
    value,
    baseline,
    unit,
    per,
    share_pct,
    z,
    z_needed,
    noise_pct,
    baseline_runs,
    label,
    why
FROM regressions
WHERE verdict IN ('regression', 'improvement', 'new', 'gone', 'unusable')
    AND ($label IS NULL OR label = $label)
ORDER BY
    CASE verdict
        WHEN 'unusable' THEN 0
        WHEN 'regression' THEN 1
        WHEN 'improvement' THEN 2
        ELSE 3
    END,
    share_pct DESC NULLS LAST,
    label,
    metric,
    subject;
