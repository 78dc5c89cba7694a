-- The whole of each side beside the first side's: GPU time, and what makes it busy and idle time.
--
-- grain:   one row per (side, part)
-- reads:   compared_activities, compared_sides, compared_traces
-- columns:
--   side            INTEGER  -    the side, from 1; the base is side 0
--   place           BIGINT   -    1, 2 … in the order of the sum
--   part            VARCHAR  -    kernel_time, overlap, busy, idle or window
--   base_ns         BIGINT   ns   of the base; NULL if unknown
--   side_ns         BIGINT   ns   of the side; NULL if unknown
--   diff_ns         BIGINT   ns   side_ns - base_ns
--   diff_pct        DOUBLE   pct  diff_ns of the size of base_ns; NULL if that is 0
--   base_median_ns  DOUBLE   ns   median over the traces of the base
--   base_mad_ns     DOUBLE   ns   median of the distances from it; NULL for a single trace
--   base_min_ns     DOUBLE   ns   least of the traces of the base
--   base_max_ns     DOUBLE   ns   greatest of the traces of the base
--   side_median_ns  DOUBLE   ns   median over the traces of the side
--   side_mad_ns     DOUBLE   ns   median of the distances from it; NULL for a single trace
--   side_min_ns     DOUBLE   ns   least of the traces of the side
--   side_max_ns     DOUBLE   ns   greatest of the traces of the side
--   is_apart        BOOLEAN  -    all traces above all of the base, or below; NULL if 1 in one
-- notes:
--   kernel_time, the durations of all GPU activities, is what compare_parts splits. With overlap,
--   minus the time in which several ran at once counts more than once, it is busy, the time with
--   any activity; with idle that is the window, from the first start to the last end on the
--   devices. Of a phase busy is summed over its steps, and idle and window are unknown. Per trace
--   or per step; overlap and idle are differences of the rounded means, so that all adds up.
CREATE OR REPLACE VIEW compare_totals AS
WITH
    kernel_times AS (
        SELECT
            side,
            trace_id,
            sum(time_ns) AS time_ns
        FROM compared_activities
        GROUP BY side, trace_id
    ),
    of_traces AS (
        SELECT
            compared_traces.side,
            CAST(compared_traces.divisor AS DOUBLE) AS divisor,
            coalesce(kernel_times.time_ns, 0) AS kernel_ns,
            compared_traces.busy_ns,
            compared_traces.window_ns
        FROM compared_traces
        LEFT JOIN kernel_times
            ON kernel_times.side = compared_traces.side
            AND kernel_times.trace_id = compared_traces.trace_id
    ),
    trace_values AS (
        SELECT side, 'kernel_time' AS part, kernel_ns / divisor AS value_ns FROM of_traces
        UNION ALL
        SELECT side, 'overlap' AS part, (busy_ns - kernel_ns) / divisor AS value_ns FROM of_traces
        UNION ALL
        SELECT side, 'busy' AS part, busy_ns / divisor AS value_ns FROM of_traces
        UNION ALL
        SELECT side, 'idle' AS part, (window_ns - busy_ns) / divisor AS value_ns FROM of_traces
        UNION ALL
        SELECT side, 'window' AS part, window_ns / divisor AS value_ns FROM of_traces
    ),
    spread AS (
        SELECT
            side,
            part,
            median(value_ns) AS median_ns,
            CASE WHEN count(value_ns) > 1 THEN mad(value_ns) END AS mad_ns,
            min(value_ns) AS min_ns,
            max(value_ns) AS max_ns
        FROM trace_values
        GROUP BY side, part
    ),
    summed AS (
        SELECT
            side,
            sum(kernel_ns) AS kernel_ns,
            CASE WHEN count(busy_ns) = count(*) THEN sum(busy_ns) END AS busy_ns,
            CASE WHEN count(window_ns) = count(*) THEN sum(window_ns) END AS window_ns
        FROM of_traces
        GROUP BY side
    ),
    averaged AS (
        SELECT
            summed.side,
            CAST((2 * kernel_ns + divisor) // (2 * divisor) AS BIGINT) AS kernel_ns,
            CAST((2 * busy_ns + divisor) // (2 * divisor) AS BIGINT) AS busy_ns,
            CAST((2 * window_ns + divisor) // (2 * divisor) AS BIGINT) AS window_ns
        FROM summed
        JOIN compared_sides
            ON compared_sides.side = summed.side
    ),
    parts AS (
        SELECT side, 1 AS place, 'kernel_time' AS part, kernel_ns AS mean_ns FROM averaged
        UNION ALL
        SELECT side, 2 AS place, 'overlap' AS part, busy_ns - kernel_ns AS mean_ns FROM averaged
        UNION ALL
        SELECT side, 3 AS place, 'busy' AS part, busy_ns AS mean_ns FROM averaged
        UNION ALL
        SELECT side, 4 AS place, 'idle' AS part, window_ns - busy_ns AS mean_ns FROM averaged
        UNION ALL
        SELECT side, 5 AS place, 'window' AS part, window_ns AS mean_ns FROM averaged
    ),
    sides AS (
        SELECT
            parts.side,
            parts.place,
            parts.part,
            parts.mean_ns,
            spread.median_ns,
            spread.mad_ns,
            spread.min_ns,
            spread.max_ns
        FROM parts
        JOIN spread
            ON spread.side = parts.side
            AND spread.part = parts.part
    )
SELECT
    other.side,
    CAST(other.place AS BIGINT) AS place,
    other.part,
    base.mean_ns AS base_ns,
    other.mean_ns AS side_ns,
    other.mean_ns - base.mean_ns AS diff_ns,
    100.0::DOUBLE * (other.mean_ns - base.mean_ns) / nullif(abs(base.mean_ns), 0) AS diff_pct,
    base.median_ns AS base_median_ns,
    base.mad_ns AS base_mad_ns,
    base.min_ns AS base_min_ns,
    base.max_ns AS base_max_ns,
    other.median_ns AS side_median_ns,
    other.mad_ns AS side_mad_ns,
    other.min_ns AS side_min_ns,
    other.max_ns AS side_max_ns,
    CASE
        WHEN base.mad_ns IS NOT NULL AND other.mad_ns IS NOT NULL
            THEN other.min_ns > base.max_ns OR other.max_ns < base.min_ns
    END AS is_apart
FROM sides AS other
JOIN sides AS base
    ON base.part = other.part
    AND base.side = 0
WHERE other.side > 0;
