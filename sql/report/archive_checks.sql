-- Checks that traces fail.
--
-- grain:   one row per (name)
-- reads:   checks, traces
-- columns:
--   name      VARCHAR  -  the check; its last word is the unit of worst, else it is a count
--   traces    BIGINT   -  traces that fail it
--   worst     DOUBLE   -  the largest value
--   expected  VARCHAR  -  what it must be
--   trace     VARCHAR  -  path of the trace with the largest
--   meaning   VARCHAR  -  what it means for the numbers
SELECT
    checks.name,
    count(*) AS traces,
    max(checks.value) AS worst,
    any_value(checks.expected) AS expected,
    first(traces.path ORDER BY checks.value DESC, traces.path) AS trace,
    any_value(checks.meaning) AS meaning
FROM checks
JOIN traces ON traces.trace_id = checks.trace_id
WHERE NOT checks.ok
    AND ($label IS NULL OR traces.label = $label)
GROUP BY checks.name
ORDER BY traces DESC, checks.name;
