-- Trust check of the whole archive: which ranks of a job have no trace. Rows of `checks`.
--
-- grain:   one row per (trace_id, name)
-- reads:   traces
-- columns:
--   trace_id  VARCHAR  -  the trace
--   name      VARCHAR  -  missing_ranks
--   ok        BOOLEAN  -  whether no rank is missing; NULL if the trace names no world size
--   value     DOUBLE   -  how many ranks are missing; NULL likewise
--   expected  VARCHAR  -  what value must be
--   meaning   VARCHAR  -  what it means for the numbers if value is not as expected
-- notes:
--   A job is what shares label and world_size. Its ranks are 0 to world_size - 1; one is there if
--   any of its traces has it, whenever it was taken.
CREATE OR REPLACE VIEW _rank_checks AS
WITH
    jobs AS (
        SELECT
            label,
            world_size,
            count(DISTINCT rank) AS present
        FROM traces
        WHERE world_size > 0
            AND rank >= 0
            AND rank < world_size
        GROUP BY label, world_size
    )
SELECT
    traces.trace_id,
    'missing_ranks' AS name,
    CASE WHEN traces.world_size > 0 THEN traces.world_size = coalesce(jobs.present, 0) END AS ok,
    CASE
        WHEN traces.world_size > 0
            THEN CAST(traces.world_size - coalesce(jobs.present, 0) AS DOUBLE)
    END AS value,
    '0' AS expected,
    'so many ranks of this job have no trace under its label: sums over ranks, skew and waiting at '
    || 'collectives are of those present only' AS meaning
FROM traces
LEFT JOIN jobs
    ON jobs.label IS NOT DISTINCT FROM traces.label
    AND jobs.world_size = traces.world_size;
