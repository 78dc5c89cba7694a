-- Checks that a trace fails.
--
-- grain:   one row per (name)
-- reads:   checks
-- columns:
--   name      VARCHAR  -  the check; its last word is the unit of value, else it is a count
--   value     DOUBLE   -  what was measured
--   expected  VARCHAR  -  what it must be
--   meaning   VARCHAR  -  what it means for the numbers
SELECT
    name,
    value,
    expected,
    meaning
FROM checks
WHERE trace_id = $trace_id
    AND NOT ok
ORDER BY name;
