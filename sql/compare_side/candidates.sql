-- Traces of a warehouse to choose from, and when each was recorded.
--
-- grain:   one row per (trace_id)
-- reads:   traces
-- columns:
--   trace_id     VARCHAR  -  the trace
--   path         VARCHAR  -  its file
--   label        VARCHAR  -  label of the job
--   status       VARCHAR  -  ok, repaired, partial or rejected
--   reason       VARCHAR  -  why the status is not ok
--   recorded_us  BIGINT   -  microseconds since 1970 at its start; else when it was analysed
-- notes:
--   A time since 1970 is known from the base time of the trace, or where its own clock counts from
--   there (times of 2001 and later).
WITH
    placed AS (
        SELECT
            trace_id,
            path,
            label,
            status,
            reason,
            CASE
                WHEN base_time_ns IS NOT NULL OR start_ns >= 1000000000000000000
                    THEN (CAST(start_ns AS HUGEINT) + coalesce(base_time_ns, 0)) // 1000
            END AS start_us,
            epoch_us(analysed_at) AS analysed_us
        FROM traces
    )
SELECT
    trace_id,
    path,
    label,
    CAST(status AS VARCHAR) AS status,
    reason,
    coalesce(TRY_CAST(start_us AS BIGINT), analysed_us) AS recorded_us
FROM placed
ORDER BY recorded_us, path, trace_id;
