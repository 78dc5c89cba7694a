-- Where the time of each device of a trace went.
--
-- grain:   one row per (lane)
-- reads:   gpu_timeline, trace_timeline
-- columns:
--   lane                VARCHAR  -    the device; `all devices`: several, taken together
--   computation_ns      BIGINT   ns   time with compute or memset activity
--   exposed_comm_ns     BIGINT   ns   time with communication and no computation
--   exposed_memcpy_ns   BIGINT   ns   time with a copy and neither
--   idle_ns             BIGINT   ns   time without any
--   total_ns            BIGINT   ns   first start to last end
--   busy_pct            DOUBLE   pct  time with any activity
--   computation_pct     DOUBLE   pct  of the total
--   exposed_comm_pct    DOUBLE   pct  of the total
--   exposed_memcpy_pct  DOUBLE   pct  of the total
--   idle_pct            DOUBLE   pct  of the total
-- notes:
--   computation + exposed_comm + exposed_memcpy + idle = total.
WITH
    devices AS (
        SELECT
            concat_ws(' ', rank_label, 'GPU', coalesce(CAST(device AS VARCHAR), '?')) AS lane,
            FALSE AS is_whole,
            rank_label,
            device,
            computation_ns,
            exposed_comm_ns,
            exposed_memcpy_ns,
            idle_ns,
            total_ns,
            busy_pct,
            computation_pct,
            exposed_comm_pct,
            exposed_memcpy_pct,
            idle_pct
        FROM gpu_timeline
        WHERE trace_id = $trace_id
    ),
    lanes AS (
        SELECT
            lane,
            is_whole,
            rank_label,
            device,
            computation_ns,
            exposed_comm_ns,
            exposed_memcpy_ns,
            idle_ns,
            total_ns,
            busy_pct,
            computation_pct,
            exposed_comm_pct,
            exposed_memcpy_pct,
            idle_pct
        FROM devices
        UNION ALL
        SELECT
            'all devices' AS lane,
            TRUE AS is_whole,
            NULL AS rank_label,
            NULL AS device,
            computation_ns,
            exposed_comm_ns,
            exposed_memcpy_ns,
            idle_ns,
            total_ns,
            busy_pct,
            computation_pct,
            exposed_comm_pct,
            exposed_memcpy_pct,
            idle_pct
        FROM trace_timeline
        WHERE trace_id = $trace_id
            AND (SELECT count(*) FROM devices) > 1
    )
SELECT
    lane,
    computation_ns,
    exposed_comm_ns,
    exposed_memcpy_ns,
    idle_ns,
    total_ns,
    busy_pct,
    computation_pct,
    exposed_comm_pct,
    exposed_memcpy_pct,
    idle_pct
FROM lanes
ORDER BY is_whole DESC, rank_label NULLS FIRST, device NULLS LAST;
