-- Runs and their steps over time, and whatever changed in the newest.
--
-- grain:   one row per (metric, line, run_id)
-- reads:   regressions, trends
-- columns:
--   metric    VARCHAR  -  what value is, as in trends
--   line      VARCHAR  -  label and what the value is of
--   position  BIGINT   -  1 is the newest run of the label
--   run_time  VARCHAR  -  when the run was recorded, or the file changed, in UTC
--   value     DOUBLE   -  the number, in unit
--   unit      VARCHAR  -  ns, pct or tokens/s
--   per       VARCHAR  -  step, trace or call: what value is per
--   run_id    VARCHAR  -  trace_id of its first trace
-- notes:
--   The last 100 runs of a label; labels of a single run have no trend and are left out.
WITH
    changed AS (
        SELECT
            label,
            metric,
            subject
        FROM regressions
        WHERE verdict IN ('regression', 'improvement')
            AND ($label IS NULL OR label = $label)
    )
SELECT
    trends.metric,
    concat_ws(' · ', trends.label, trends.subject) AS line,
    trends.position,
    strftime(trends.run_time AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS run_time,
    trends.value,
    trends.unit,
    trends.per,
    trends.run_id
FROM trends
LEFT JOIN changed
    ON changed.label IS NOT DISTINCT FROM trends.label
    AND changed.metric = trends.metric
    AND changed.subject = trends.subject
WHERE (trends.name IS NULL OR changed.subject IS NOT NULL)
    AND trends.position <= 100
    AND ($label IS NULL OR trends.label = $label)
QUALIFY max(trends.position) OVER (PARTITION BY trends.label) > 1
ORDER BY
    CASE trends.metric
        WHEN 'busy_ns' THEN 0
        WHEN 'step_ns' THEN 1
        WHEN 'tokens_per_s' THEN 2
        WHEN 'op_ns' THEN 3
        ELSE 4
    END,
    trends.metric,
    line,
    trends.position DESC;
