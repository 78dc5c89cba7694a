-- Spans of every lane, on the common axis of the lanes, each with the ends of the earlier ones.
--
-- grain:   one row per (lane, event_id)
-- reads:   _gpu_lanes, _gpu_spans
-- columns:
--   lane             BIGINT   -   lane of the row
--   trace_id         VARCHAR  -   trace the lane belongs to
--   rank_label       VARCHAR  -   rank in a file of merged ranks; else NULL
--   device           BIGINT   -   device the activity ran on; NULL if not recorded
--   is_whole         BOOLEAN  -   whether the lane is all devices of the trace together
--   event_id         BIGINT   -   the GPU activity
--   kind             VARCHAR  -   compute, comm, memcpy or memset
--   start_ns         HUGEINT  ns  start on the trace's clock
--   first_ns         HUGEINT  ns  first start on the lane, on the trace's clock
--   from_ns          HUGEINT  ns  start on the common axis
--   to_ns            HUGEINT  ns  end on the common axis
--   any_until_ns     HUGEINT  ns  latest end of the earlier activities; NULL: there is none
--   last_to_end_id   BIGINT   -   which of them that is; of several the one that started first
--   comp_until_ns    HUGEINT  ns  latest end of the earlier computation: compute and memset
--   comm_until_ns    HUGEINT  ns  latest end of the earlier communication
--   either_until_ns  HUGEINT  ns  latest end of the earlier of both
--   memcpy_until_ns  HUGEINT  ns  latest end of the earlier copies
-- notes:
--   An activity is on the lane of its device and, if the trace has several devices, on that of
--   the trace. Lanes lie one behind the other on the axis: what is earlier on another lane has
--   ended.
CREATE OR REPLACE VIEW _lane_spans AS
WITH
    spans_of_lanes AS (
        SELECT
            lanes.lane,
            lanes.trace_id,
            spans.rank_label,
            spans.device,
            lanes.is_whole,
            spans.event_id,
            spans.kind,
            spans.start_ns,
            lanes.start_ns AS first_ns,
            spans.start_ns + lanes.shift_ns AS from_ns,
            spans.end_ns + lanes.shift_ns AS to_ns
        FROM _gpu_spans AS spans
        JOIN _gpu_lanes AS lanes
            ON lanes.trace_id = spans.trace_id
            AND lanes.rank_label IS NOT DISTINCT FROM spans.rank_label
            AND lanes.device IS NOT DISTINCT FROM spans.device
        WHERE NOT lanes.is_whole
        UNION ALL
        SELECT
            lanes.lane,
            lanes.trace_id,
            spans.rank_label,
            spans.device,
            lanes.is_whole,
            spans.event_id,
            spans.kind,
            spans.start_ns,
            lanes.start_ns AS first_ns,
            spans.start_ns + lanes.shift_ns AS from_ns,
            spans.end_ns + lanes.shift_ns AS to_ns
        FROM _gpu_spans AS spans
        JOIN _gpu_lanes AS lanes ON lanes.trace_id = spans.trace_id
        WHERE lanes.is_whole
    )
SELECT
    lane,
    trace_id,
    rank_label,
    device,
    is_whole,
    event_id,
    kind,
    start_ns,
    first_ns,
    from_ns,
    to_ns,
    max(to_ns) OVER earlier AS any_until_ns,
    arg_max(event_id, to_ns) OVER earlier AS last_to_end_id,
    max(to_ns) FILTER (WHERE kind IN ('compute', 'memset')) OVER earlier AS comp_until_ns,
    max(to_ns) FILTER (WHERE kind = 'comm') OVER earlier AS comm_until_ns,
    max(to_ns) FILTER (WHERE kind IN ('compute', 'memset', 'comm')) OVER earlier AS either_until_ns,
    max(to_ns) FILTER (WHERE kind = 'memcpy') OVER earlier AS memcpy_until_ns
FROM spans_of_lanes
WINDOW earlier AS (
    ORDER BY from_ns, lane, event_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
