-- Busy time of every lane by kind of activity.
--
-- grain:   one row per (lane)
-- reads:   _gpu_lanes, _lane_spans
-- columns:
--   lane               BIGINT   -   lane of the row
--   trace_id           VARCHAR  -   trace the lane belongs to
--   rank_label         VARCHAR  -   rank of the lane; NULL unless the file merges ranks
--   device             BIGINT   -   device of the lane; NULL if not recorded, and for a whole trace
--   is_whole           BOOLEAN  -   whether the lane is all devices of the trace together
--   device_count       BIGINT   -   devices with activity in the trace
--   start_ns           BIGINT   ns  first start of an activity
--   end_ns             BIGINT   ns  last end of an activity
--   total_ns           BIGINT   ns  first start to last end
--   busy_ns            BIGINT   ns  time with any activity
--   idle_ns            BIGINT   ns  time without: total less busy
--   computation_ns     BIGINT   ns  time with compute or memset activity
--   comm_ns            BIGINT   ns  time with communication
--   exposed_comm_ns    BIGINT   ns  time with communication and no computation
--   memcpy_ns          BIGINT   ns  time with a copy
--   exposed_memcpy_ns  BIGINT   ns  time with a copy and neither computation nor communication
-- notes:
--   Each time is the length of a union of half-open intervals: in order of start, an interval adds
--   what lies beyond the latest end of the earlier ones of its kinds. Differences of nested unions
--   give the exposed times: |COMM - COMP| = |COMP + COMM| - |COMP|.
CREATE OR REPLACE VIEW _lane_timelines AS
WITH
    unions AS (
        SELECT
            lane,
            sum(greatest(to_ns - greatest(from_ns, any_until_ns), 0)) AS any_ns,
            coalesce(
                sum(greatest(to_ns - greatest(from_ns, comp_until_ns), 0))
                FILTER (WHERE kind IN ('compute', 'memset')),
                0
            ) AS comp_ns,
            coalesce(
                sum(greatest(to_ns - greatest(from_ns, comm_until_ns), 0))
                FILTER (WHERE kind = 'comm'),
                0
            ) AS comm_ns,
            coalesce(
                sum(greatest(to_ns - greatest(from_ns, either_until_ns), 0))
                FILTER (WHERE kind IN ('compute', 'memset', 'comm')),
                0
            ) AS either_ns,
            coalesce(
                sum(greatest(to_ns - greatest(from_ns, memcpy_until_ns), 0))
                FILTER (WHERE kind = 'memcpy'),
                0
            ) AS memcpy_ns
        FROM _lane_spans
        GROUP BY lane
    )
SELECT
    lanes.lane,
    lanes.trace_id,
    lanes.rank_label,
    lanes.device,
    lanes.is_whole,
    lanes.device_count,
    TRY_CAST(lanes.start_ns AS BIGINT) AS start_ns,
    TRY_CAST(lanes.end_ns AS BIGINT) AS end_ns,
    TRY_CAST(lanes.end_ns - lanes.start_ns AS BIGINT) AS total_ns,
    TRY_CAST(unions.any_ns AS BIGINT) AS busy_ns,
    TRY_CAST(lanes.end_ns - lanes.start_ns - unions.any_ns AS BIGINT) AS idle_ns,
    TRY_CAST(unions.comp_ns AS BIGINT) AS computation_ns,
    TRY_CAST(unions.comm_ns AS BIGINT) AS comm_ns,
    TRY_CAST(unions.either_ns - unions.comp_ns AS BIGINT) AS exposed_comm_ns,
    TRY_CAST(unions.memcpy_ns AS BIGINT) AS memcpy_ns,
    TRY_CAST(unions.any_ns - unions.either_ns AS BIGINT) AS exposed_memcpy_ns
FROM _gpu_lanes AS lanes
JOIN unions ON unions.lane = lanes.lane;
