-- The parts of each side: sums over its traces, and how they spread over them.
--
-- grain:   one row per (level, name, shapes, types, kind, side)
-- reads:   compared_sides, compared_traces, _trace_parts
-- columns:
--   level          VARCHAR  -   op, kernel, category or phase
--   name           VARCHAR  -   op, kernel of the first side, category or phase; NULL if nameless
--   shapes         VARCHAR  -   of level op: shapes of its inputs; NULL if unknown
--   types          VARCHAR  -   of level op: types of its inputs; NULL if unknown
--   kind           VARCHAR  -   of level kernel: compute, comm, memcpy or memset; else NULL
--   side           INTEGER  -   the side, from 0
--   mean_ns        BIGINT   ns  sum_ns by the divisor of the side, in whole nanoseconds
--   sum_ns         BIGINT   ns  durations of its GPU activities in all traces of the side
--   activities     BIGINT   -   GPU activities
--   untimed        BIGINT   -   of these, activities of unknown duration
--   renamed        BIGINT   -   of these, activities whose kernel has another name
--   calls          BIGINT   -   calls; of a kernel activities; of a phase steps; 0 if it has none
--   mean_calls     DOUBLE   -   calls by the divisor of the side; NULL where it has only work
--   limited_calls  BIGINT   -   calls that have a roofline
--   limited_ns     BIGINT   ns  GPU time of these calls
--   roofline_ns    DOUBLE   ns  their least time on the device; NULL if none
--   median_ns      DOUBLE   ns  median over the traces
--   mad_ns         DOUBLE   ns  median of the distances from it; NULL for a single trace
--   min_ns         DOUBLE   ns  least of the traces
--   max_ns         DOUBLE   ns  greatest of the traces
-- notes:
--   Means are rounded so that they add up: of the running sum, in order of the key, each part gets
--   what the rounded mean of the sum grows by. So each is within 1 ns of its mean, exact for one
--   trace, and all together give the rounded mean of the whole. Over traces, each is divided by its
--   own divisor; a trace without the part counts as 0.
CREATE OR REPLACE VIEW _side_parts AS
WITH
    summed AS (
        SELECT
            parts.level,
            parts.name,
            parts.shapes,
            parts.types,
            parts.kind,
            parts.side,
            sum(parts.time_ns) AS sum_ns,
            sum(parts.activities) AS activities,
            sum(parts.untimed) AS untimed,
            sum(parts.renamed) AS renamed,
            sum(parts.calls) AS calls,
            sum(parts.limited_calls) AS limited_calls,
            sum(parts.limited_ns) AS limited_ns,
            round(sum(parts.roofline_ns), 6) AS roofline_ns,
            count(*) AS traces,
            median(parts.time_ns / CAST(compared_traces.divisor AS DOUBLE)) AS median_ns,
            mad(parts.time_ns / CAST(compared_traces.divisor AS DOUBLE)) AS mad_ns,
            min(parts.time_ns / CAST(compared_traces.divisor AS DOUBLE)) AS min_ns,
            max(parts.time_ns / CAST(compared_traces.divisor AS DOUBLE)) AS max_ns
        FROM _trace_parts AS parts
        JOIN compared_traces
            ON compared_traces.side = parts.side
            AND compared_traces.trace_id = parts.trace_id
        GROUP BY parts.level, parts.name, parts.shapes, parts.types, parts.kind, parts.side
    ),
    running AS (
        SELECT
            summed.*,
            compared_sides.divisor,
            sum(summed.sum_ns) OVER (
                PARTITION BY summed.level, summed.side
                ORDER BY
                    summed.name NULLS FIRST,
                    summed.shapes NULLS FIRST,
                    summed.types NULLS FIRST,
                    summed.kind NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS up_to_ns
        FROM summed
        JOIN compared_sides
            ON compared_sides.side = summed.side
    )
SELECT
    level,
    name,
    shapes,
    types,
    kind,
    side,
    CAST(
        (2 * up_to_ns + divisor) // (2 * divisor)
        - (2 * (up_to_ns - sum_ns) + divisor) // (2 * divisor)
        AS BIGINT
    ) AS mean_ns,
    CAST(sum_ns AS BIGINT) AS sum_ns,
    CAST(activities AS BIGINT) AS activities,
    CAST(untimed AS BIGINT) AS untimed,
    CAST(renamed AS BIGINT) AS renamed,
    CAST(calls AS BIGINT) AS calls,
    CASE
        WHEN calls > 0 OR activities = 0 THEN calls / CAST(divisor AS DOUBLE)
    END AS mean_calls,
    CAST(limited_calls AS BIGINT) AS limited_calls,
    CAST(limited_ns AS BIGINT) AS limited_ns,
    roofline_ns,
    median_ns,
    CASE WHEN traces > 1 THEN mad_ns END AS mad_ns,
    min_ns,
    max_ns
FROM running;
