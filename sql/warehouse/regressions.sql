-- The newest run of each label against the runs before it: what got slower beyond the noise.
--
-- grain:   one row per (label, metric, subject)
-- reads:   trends, job_runs, _gate_runs, _gate_settings
-- columns:
--   label          VARCHAR      -    label of the job; NULL if no file names the trace
--   metric         VARCHAR      -    what value is, as in trends; or run
--   subject        VARCHAR      -    what it is of, as in trends; of run its file
--   run_id         VARCHAR      -    the newest run; of several judged, the last
--   run_time       TIMESTAMPTZ  -    when that was recorded, as in runs
--   verdict        VARCHAR      -    regression, improvement, steady …: see the notes
--   value          DOUBLE       -    the newest, in unit; NULL if it has none
--   baseline       DOUBLE       -    median of the baseline runs; NULL if none has it
--   unit           VARCHAR      -    ns, pct or tokens/s
--   per            VARCHAR      -    step, trace or call: what value is per
--   change         DOUBLE       -    value less baseline, in unit
--   change_pct     DOUBLE       pct  the same, of baseline
--   worse          VARCHAR      -    up or down: which way is worse
--   z              DOUBLE       -    change in units of its noise
--   z_needed       DOUBLE       -    least size of z that is beyond the noise
--   noise_pct      DOUBLE       pct  spread between runs that z is taken with
--   spread_pct     DOUBLE       pct  spread of this number alone, from its MAD
--   baseline_runs  BIGINT       -    baseline runs that have it
--   tests          BIGINT       -    subjects of the metric that were judged
--   share_pct      DOUBLE       pct  share of time, the larger of newest and baseline
--   name           VARCHAR      -    op or kernel; NULL for other subjects
--   input_dims     VARCHAR      -    shape per input of the op, as text; or NULL
--   input_types    VARCHAR      -    type per input of the op, as text; or NULL
--   why            VARCHAR      -    why there is no judgement; NULL if there is
-- notes:
--   spread is 1.4826 * MAD * n / (n - 0.8) of n baseline runs; noise the largest of it, the median
--   spread of the metric's judged subjects and the assumed floor. z = change / (noise * sqrt(c +
--   1.5708 / n)), c = 1 for one newest run and 1.5708 / k for k: the median's own error counts.
--   z_needed is the normal quantile of false_alarm_pct / tests: the more is looked at, the further
--   out. A regression is worse by at least max_slowdown_pct, in time, and beyond z_needed; an
--   improvement likewise. Else steady. Not judged: new, gone (no baseline run, not the newest run
--   has it), too_few (baseline runs), small (share), zero (baseline is 0), and unusable, of metric
--   run: the newest run of the label was not read whole.
CREATE OR REPLACE VIEW regressions AS
WITH
    sides AS (
        SELECT
            _gate_runs.label,
            count(*) FILTER (WHERE _gate_runs.side = 'newest') AS newest_count,
            count(*) FILTER (WHERE _gate_runs.side = 'baseline') AS baseline_count,
            arg_max(job_runs.run_id, job_runs.run_time)
                FILTER (WHERE _gate_runs.side = 'newest') AS run_id,
            max(job_runs.run_time) FILTER (WHERE _gate_runs.side = 'newest') AS run_time
        FROM _gate_runs
        JOIN job_runs USING (run_id)
        WHERE _gate_runs.side <> 'unusable'
        GROUP BY _gate_runs.label
    ),
    valued AS (
        SELECT
            _gate_runs.label,
            _gate_runs.side,
            trends.metric,
            trends.subject,
            trends.value,
            trends.unit,
            trends.per,
            trends.worse,
            trends.share_pct,
            trends.name,
            trends.input_dims,
            trends.input_types
        FROM _gate_runs
        JOIN trends ON trends.run_id = _gate_runs.run_id
        WHERE _gate_runs.side <> 'unusable'
    ),
    summed AS (
        SELECT
            label,
            metric,
            subject,
            median(value) FILTER (WHERE side = 'newest') AS value,
            median(value) FILTER (WHERE side = 'baseline') AS baseline,
            mad(value) FILTER (WHERE side = 'baseline') AS mad,
            count(*) FILTER (WHERE side = 'baseline') AS n,
            greatest(
                median(share_pct) FILTER (WHERE side = 'newest'),
                median(share_pct) FILTER (WHERE side = 'baseline')
            ) AS share_pct,
            min(unit) AS unit,
            min(per) AS per,
            min(worse) AS worse,
            min(name) AS name,
            min(input_dims) AS input_dims,
            min(input_types) AS input_types
        FROM valued
        GROUP BY label, metric, subject
    ),
    known AS (
        SELECT
            summed.*,
            sides.run_id,
            sides.run_time,
            sides.newest_count,
            CASE
                WHEN sides.baseline_count < settings.min_runs THEN 'too_few'
                WHEN summed.value IS NULL THEN 'gone'
                WHEN summed.n = 0 THEN 'new'
                WHEN summed.n < settings.min_runs THEN 'too_few'
                WHEN summed.share_pct < settings.min_share_pct THEN 'small'
                WHEN summed.baseline <= 0 THEN 'zero'
            END AS unjudged,
            CASE
                WHEN summed.n > 0
                    THEN 148.26 * summed.mad / nullif(summed.baseline, 0)
                        * summed.n / (summed.n - 0.8)
            END AS spread_pct,
            settings.max_slowdown_pct,
            settings.false_alarm_pct,
            settings.noise_floor_pct,
            settings.min_runs,
            settings.min_share_pct
        FROM summed
        JOIN sides ON sides.label IS NOT DISTINCT FROM summed.label
        CROSS JOIN _gate_settings AS settings
    ),
    judged AS (
        SELECT
            known.*,
            count(*) FILTER (WHERE unjudged IS NULL) OVER in_metric AS tests,
            CASE
                WHEN unjudged IS NULL
                    THEN greatest(
                        spread_pct,
                        median(spread_pct) FILTER (WHERE unjudged IS NULL) OVER in_metric,
                        noise_floor_pct
                    )
            END AS noise_pct,
            sqrt(-2 * ln(
                false_alarm_pct / 100
                / nullif(count(*) FILTER (WHERE unjudged IS NULL) OVER in_metric, 0)
            )) AS t
        FROM known
        WINDOW in_metric AS (PARTITION BY label, metric)
    ),
    scored AS (
        SELECT
            judged.*,
            100 * (value / nullif(baseline, 0) - 1) AS change_pct,
            100 * (value / nullif(baseline, 0) - 1)
            / (
                noise_pct * sqrt(
                    CASE WHEN newest_count > 1 THEN pi() / 2 / newest_count ELSE 1 END
                    + pi() / 2 / n
                )
            ) AS z,
            -- The quantile by Abramowitz and Stegun 26.2.23: off by less than 0.00045.
            t - (2.515517 + 0.802853 * t + 0.010328 * t * t)
            / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t) AS z_needed,
            CASE
                WHEN worse = 'up' THEN value >= baseline * (1 + max_slowdown_pct / 100)
                ELSE value * (1 + max_slowdown_pct / 100) <= baseline
            END AS is_much_worse,
            CASE
                WHEN worse = 'up' THEN value * (1 + max_slowdown_pct / 100) <= baseline
                ELSE value >= baseline * (1 + max_slowdown_pct / 100)
            END AS is_much_better
        FROM judged
    )
SELECT
    label,
    metric,
    subject,
    run_id,
    run_time,
    CASE
        WHEN unjudged IS NOT NULL THEN unjudged
        WHEN is_much_worse AND abs(z) >= z_needed THEN 'regression'
        WHEN is_much_better AND abs(z) >= z_needed THEN 'improvement'
        ELSE 'steady'
    END AS verdict,
    value,
    baseline,
    unit,
    per,
    value - baseline AS change,
    change_pct,
    worse,
    CASE WHEN unjudged IS NULL THEN z END AS z,
    CASE WHEN unjudged IS NULL THEN z_needed END AS z_needed,
    noise_pct,
    spread_pct,
    n AS baseline_runs,
    tests,
    share_pct,
    name,
    input_dims,
    input_types,
    CASE unjudged
        WHEN 'too_few' THEN n || ' baseline runs have it, ' || min_runs || ' are needed'
        WHEN 'gone' THEN 'the newest run has none of it'
        WHEN 'new' THEN 'no baseline run has it'
        WHEN 'small' THEN 'its share of time is below ' || min_share_pct || ' %'
        WHEN 'zero' THEN 'the baseline is 0'
    END AS why
FROM scored
UNION ALL
SELECT
    _gate_runs.label,
    'run' AS metric,
    coalesce(job_runs.path, job_runs.run_id) AS subject,
    job_runs.run_id,
    job_runs.run_time,
    'unusable' AS verdict,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL,
    job_runs.status || coalesce(': ' || job_runs.reason, '') AS why
FROM _gate_runs
JOIN job_runs USING (run_id)
WHERE _gate_runs.side = 'unusable';
