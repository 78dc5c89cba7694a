-- Findings of the whole archive: a rank that has several traces of one time. Rows of `issues`.
--
-- grain:   one row per (trace_id, code)
-- reads:   traces
-- columns:
--   trace_id        VARCHAR  -  the trace
--   code            VARCHAR  -  RANK_DUPLICATE
--   severity        VARCHAR  -  warning
--   count           BIGINT   -  1
--   first_event_id  BIGINT   -  NULL: it concerns no event
--   example         VARCHAR  -  path of another trace of the rank
--   action          VARCHAR  -  what was done, and what is kept
-- notes:
--   Two traces are of one rank if label and rank are the same, and of one time if their time ranges
--   touch: runs of one job on several nights are none. Without a base time and without times since
--   1970 (2001 and later) a range cannot be placed; such traces are of one time with each other.
CREATE OR REPLACE VIEW _rank_issues AS
WITH
    timed_traces AS (
        SELECT
            trace_id,
            path,
            label,
            rank,
            base_time_ns IS NOT NULL OR start_ns >= 1000000000000000000 AS is_placed,
            CAST(start_ns AS HUGEINT) + coalesce(base_time_ns, 0) AS from_ns,
            CAST(end_ns AS HUGEINT) + coalesce(base_time_ns, 0) AS to_ns
        FROM traces
        WHERE rank IS NOT NULL
    ),
    neighbours AS (
        SELECT
            trace_id,
            from_ns,
            to_ns,
            coalesce(is_placed, FALSE) AS is_placed,
            lag(path) OVER in_order AS path_before,
            lead(path) OVER in_order AS path_after,
            max(to_ns) OVER (in_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns,
            lead(from_ns) OVER in_order AS next_ns
        FROM timed_traces
        WINDOW in_order AS (
            PARTITION BY label, rank, coalesce(is_placed, FALSE)
            ORDER BY from_ns, trace_id
        )
    )
SELECT
    trace_id,
    'RANK_DUPLICATE' AS code,
    'warning' AS severity,
    1::BIGINT AS count,
    CAST(NULL AS BIGINT) AS first_event_id,
    CASE
        WHEN path_before IS NOT NULL AND (NOT is_placed OR until_ns >= from_ns) THEN path_before
        ELSE path_after
    END AS example,
    'each kept under its own trace_id, not to be summed as one rank' AS action
FROM neighbours
WHERE (path_before IS NOT NULL AND (NOT is_placed OR until_ns >= from_ns))
    OR (path_after IS NOT NULL AND (NOT is_placed OR next_ns <= to_ns));
