-- Which run each trace belongs to, and when it was recorded.
--
-- grain:   one row per (trace_id)
-- reads:   traces, files
-- columns:
--   trace_id     VARCHAR      -  the trace
--   label        VARCHAR      -  label of its job; NULL if no file names the trace
--   run_id       VARCHAR      -  trace_id of the first trace of the run
--   run_time     TIMESTAMPTZ  -  when the trace was recorded, see time_source
--   time_source  VARCHAR      -  recorded, file or analysed: what run_time is
-- notes:
--   Time: recorded is the first start in the trace, where the trace says when its clock began or
--   counts from 1970 (2001 and later); else file, when the file was last changed; else analysed.
--   A run is one trace; or those traces of one label and world size whose rank and recorded time
--   are known and whose time ranges touch: the files of the ranks of one job.
CREATE OR REPLACE VIEW _trace_runs AS
WITH
    written AS (
        SELECT
            holder.trace_id,
            min(holder.mtime) AS mtime
        FROM (SELECT unnest(traces) AS trace_id, mtime FROM files) AS holder
        WHERE epoch_us(holder.mtime) > 0
        GROUP BY holder.trace_id
    ),
    timed AS (
        SELECT
            traces.trace_id,
            traces.label,
            traces.world_size,
            traces.analysed_at,
            written.mtime,
            coalesce(
                traces.base_time_ns IS NOT NULL OR traces.start_ns >= 1000000000000000000, FALSE
            )
            AND traces.start_ns IS NOT NULL AS is_placed,
            CAST(traces.start_ns AS HUGEINT) + coalesce(traces.base_time_ns, 0) AS from_ns,
            CAST(traces.end_ns AS HUGEINT) + coalesce(traces.base_time_ns, 0) AS to_ns,
            traces.rank
        FROM traces
        LEFT JOIN written USING (trace_id)
    ),
    told AS (
        SELECT
            trace_id,
            label,
            world_size,
            is_placed AND rank IS NOT NULL AS is_joined,
            from_ns,
            to_ns,
            CASE
                WHEN is_placed THEN make_timestamptz(CAST(from_ns // 1000 AS BIGINT))
                ELSE coalesce(mtime, analysed_at)
            END AS run_time,
            CASE
                WHEN is_placed THEN 'recorded'
                WHEN mtime IS NOT NULL THEN 'file'
                WHEN analysed_at IS NOT NULL THEN 'analysed'
            END AS time_source
        FROM timed
    ),
    marked AS (
        SELECT
            trace_id,
            label,
            world_size,
            is_joined,
            from_ns,
            run_time,
            time_source,
            is_joined
            AND coalesce(
                from_ns <= max(to_ns) OVER (
                    PARTITION BY label, world_size, is_joined
                    ORDER BY from_ns, trace_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                FALSE
            ) AS is_with_the_last
        FROM told
    ),
    numbered AS (
        SELECT
            trace_id,
            label,
            world_size,
            is_joined,
            from_ns,
            run_time,
            time_source,
            count(*) FILTER (WHERE NOT is_with_the_last) OVER (
                PARTITION BY label, world_size, is_joined
                ORDER BY from_ns, trace_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS run_number
        FROM marked
    )
SELECT
    trace_id,
    label,
    first_value(trace_id) OVER (
        PARTITION BY label, world_size, is_joined, run_number
        ORDER BY from_ns, trace_id
    ) AS run_id,
    run_time,
    time_source
FROM numbered;
