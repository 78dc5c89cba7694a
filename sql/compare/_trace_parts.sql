-- The parts of each trace at every level, with zeros where a trace has nothing of a part.
--
-- grain:   one row per (level, name, shapes, types, kind, side, trace_id)
-- reads:   compared_activities, compared_calls, compared_phases, compared_traces, _kernel_times
-- columns:
--   level          VARCHAR  -   op, kernel, category or phase
--   name           VARCHAR  -   op, kernel of the first side, category or phase; NULL if nameless
--   shapes         VARCHAR  -   of level op: shapes of its inputs; NULL if unknown
--   types          VARCHAR  -   of level op: types of its inputs; NULL if unknown
--   kind           VARCHAR  -   of level kernel: compute, comm, memcpy or memset; else NULL
--   side           INTEGER  -   the side, from 0
--   trace_id       VARCHAR  -   the trace
--   time_ns        BIGINT   ns  durations of its GPU activities, summed
--   activities     BIGINT   -   GPU activities
--   untimed        BIGINT   -   of these, activities of unknown duration
--   renamed        BIGINT   -   of these, activities whose kernel has another name
--   calls          BIGINT   -   calls; of a kernel activities; of a phase steps
--   limited_calls  BIGINT   -   calls that have a roofline
--   limited_ns     BIGINT   ns  GPU time of these calls
--   roofline_ns    DOUBLE   ns  their least time on the device; NULL if none
-- notes:
--   At each level, every activity of a trace is in exactly one part: the times of its parts add up
--   to the same sum.
CREATE OR REPLACE VIEW _trace_parts AS
WITH
    pieces AS (
        SELECT
            'op' AS level,
            op AS name,
            shapes,
            types,
            CAST(NULL AS VARCHAR) AS kind,
            side,
            trace_id,
            time_ns,
            activities,
            untimed,
            0 AS renamed,
            0 AS calls,
            0 AS limited_calls,
            0 AS limited_ns,
            CAST(NULL AS DOUBLE) AS roofline_ns
        FROM compared_activities
        UNION ALL
        SELECT
            'kernel' AS level,
            base_kernel AS name,
            NULL AS shapes,
            NULL AS types,
            kind,
            side,
            trace_id,
            time_ns,
            activities,
            untimed,
            CASE WHEN kernel IS DISTINCT FROM base_kernel THEN activities ELSE 0 END AS renamed,
            activities AS calls,
            0 AS limited_calls,
            0 AS limited_ns,
            NULL AS roofline_ns
        FROM _kernel_times
        UNION ALL
        SELECT
            levels.level,
            CASE WHEN levels.level = 'phase' THEN own.phase ELSE own.category END AS name,
            NULL AS shapes,
            NULL AS types,
            NULL AS kind,
            own.side,
            own.trace_id,
            own.time_ns,
            own.activities,
            own.untimed,
            0 AS renamed,
            0 AS calls,
            0 AS limited_calls,
            0 AS limited_ns,
            NULL AS roofline_ns
        FROM compared_activities AS own
        CROSS JOIN (VALUES ('category'), ('phase')) AS levels(level)
        UNION ALL
        SELECT
            levels.level,
            CASE levels.level
                WHEN 'op' THEN own.op
                WHEN 'category' THEN own.category
                ELSE own.phase
            END AS name,
            CASE WHEN levels.level = 'op' THEN own.shapes END AS shapes,
            CASE WHEN levels.level = 'op' THEN own.types END AS types,
            NULL AS kind,
            own.side,
            own.trace_id,
            0 AS time_ns,
            0 AS activities,
            0 AS untimed,
            0 AS renamed,
            CASE WHEN levels.level = 'phase' THEN 0 ELSE own.calls END AS calls,
            own.limited_calls,
            own.limited_ns,
            own.roofline_ns
        FROM compared_calls AS own
        CROSS JOIN (VALUES ('op'), ('category'), ('phase')) AS levels(level)
        UNION ALL
        SELECT
            'phase' AS level,
            phase AS name,
            NULL AS shapes,
            NULL AS types,
            NULL AS kind,
            side,
            trace_id,
            0 AS time_ns,
            0 AS activities,
            0 AS untimed,
            0 AS renamed,
            steps AS calls,
            0 AS limited_calls,
            0 AS limited_ns,
            NULL AS roofline_ns
        FROM compared_phases
    ),
    keys AS (
        SELECT DISTINCT
            level,
            name,
            shapes,
            types,
            kind
        FROM pieces
    ),
    filled AS (
        SELECT
            level,
            name,
            shapes,
            types,
            kind,
            side,
            trace_id,
            time_ns,
            activities,
            untimed,
            renamed,
            calls,
            limited_calls,
            limited_ns,
            roofline_ns
        FROM pieces
        UNION ALL
        SELECT
            keys.level,
            keys.name,
            keys.shapes,
            keys.types,
            keys.kind,
            compared_traces.side,
            compared_traces.trace_id,
            0 AS time_ns,
            0 AS activities,
            0 AS untimed,
            0 AS renamed,
            0 AS calls,
            0 AS limited_calls,
            0 AS limited_ns,
            NULL AS roofline_ns
        FROM keys
        CROSS JOIN compared_traces
    )
SELECT
    level,
    name,
    shapes,
    types,
    kind,
    side,
    trace_id,
    CAST(sum(time_ns) AS BIGINT) AS time_ns,
    CAST(sum(activities) AS BIGINT) AS activities,
    CAST(sum(untimed) AS BIGINT) AS untimed,
    CAST(sum(renamed) AS BIGINT) AS renamed,
    CAST(sum(calls) AS BIGINT) AS calls,
    CAST(sum(limited_calls) AS BIGINT) AS limited_calls,
    CAST(sum(limited_ns) AS BIGINT) AS limited_ns,
    round(sum(roofline_ns), 6) AS roofline_ns
FROM filled
GROUP BY level, name, shapes, types, kind, side, trace_id;
