-- Lanes that busy time is a union over: each device, and all devices of a trace that has several.
--
-- grain:   one row per (lane)
-- reads:   _gpu_spans
-- columns:
--   lane          BIGINT   -   number of the lane, from 1
--   trace_id      VARCHAR  -   trace the lane belongs to
--   rank_label    VARCHAR  -   rank of the lane; NULL unless the file merges ranks
--   device        BIGINT   -   device of the lane; NULL if not recorded, and for a whole trace
--   is_whole      BOOLEAN  -   whether the lane is all devices of the trace together
--   device_count  BIGINT   -   devices with activity in the trace, over all its ranks
--   start_ns      HUGEINT  ns  first start on the lane
--   end_ns        HUGEINT  ns  last end on the lane
--   shift_ns      HUGEINT  ns  add to a time of the lane for its place on the common axis
-- notes:
--   The common axis holds the lanes one after the other, a tick apart, so that one ordered window
--   serves all of them: what a span meets of earlier lanes has ended before its own lane begins.
--   A window partitioned by lane gives the same rows and costs five times as much with 100 lanes.
CREATE OR REPLACE VIEW _gpu_lanes AS
WITH
    device_lanes AS (
        SELECT
            trace_id,
            rank_label,
            device,
            min(start_ns) AS start_ns,
            max(end_ns) AS end_ns
        FROM _gpu_spans
        GROUP BY trace_id, rank_label, device
    ),
    whole_lanes AS (
        SELECT
            trace_id,
            count(*) AS device_count,
            min(start_ns) AS start_ns,
            max(end_ns) AS end_ns
        FROM device_lanes
        GROUP BY trace_id
    ),
    lanes AS (
        SELECT
            device_lanes.trace_id,
            device_lanes.rank_label,
            device_lanes.device,
            FALSE AS is_whole,
            whole_lanes.device_count,
            device_lanes.start_ns,
            device_lanes.end_ns
        FROM device_lanes
        JOIN whole_lanes ON whole_lanes.trace_id = device_lanes.trace_id
        UNION ALL
        SELECT
            trace_id,
            NULL AS rank_label,
            NULL AS device,
            TRUE AS is_whole,
            device_count,
            start_ns,
            end_ns
        FROM whole_lanes
        WHERE device_count > 1
    )
SELECT
    row_number() OVER in_order AS lane,
    trace_id,
    rank_label,
    device,
    is_whole,
    device_count,
    start_ns,
    end_ns,
    CAST(sum(end_ns - start_ns + 1) OVER in_order AS HUGEINT) - end_ns AS shift_ns
FROM lanes
WINDOW in_order AS (
    ORDER BY trace_id, is_whole, rank_label, device
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
