-- What was odd in traces, and what was done about it.
--
-- grain:   one row per (code)
-- reads:   issues, traces
-- columns:
--   code      VARCHAR  -  stable code
--   severity  VARCHAR  -  info, warning or error
--   traces    BIGINT   -  traces that have it
--   count     BIGINT   -  how often in all
--   action    VARCHAR  -  what was done, and what is kept
SELECT
    issues.code,
    min(issues.severity) AS severity,
    count(DISTINCT issues.trace_id) AS traces,
    CAST(sum(issues.count) AS BIGINT) AS count,
    min(issues.action) AS action
FROM issues
JOIN traces ON traces.trace_id = issues.trace_id
WHERE $label IS NULL
    OR traces.label = $label
GROUP BY issues.code
ORDER BY
    CASE min(issues.severity) WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    traces DESC,
    issues.code;
