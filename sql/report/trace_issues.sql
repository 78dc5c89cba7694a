-- What was odd in a trace, and what was done about it.
--
-- grain:   one row per (code)
-- reads:   issues
-- columns:
--   code      VARCHAR  -  stable code
--   severity  VARCHAR  -  info, warning or error
--   count     BIGINT   -  how often
--   example   VARCHAR  -  one example, shortened
--   action    VARCHAR  -  what was done, and what is kept
SELECT
    code,
    severity,
    count,
    example,
    action
FROM issues
WHERE trace_id = $trace_id
ORDER BY
    CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    code;
