-- What each device of a trace did over time, in 600 equal slices.
--
-- grain:   one row per (lane, at_ns)
-- reads:   gpu_timeline, kernels
-- columns:
--   lane               VARCHAR  -   the device; the first eight
--   at_ns              BIGINT   ns  start of the slice, from the first GPU activity of the trace
--   until_ns           BIGINT   ns  its end
--   computation_ns     BIGINT   ns  time in it with compute or memset activity
--   exposed_comm_ns    BIGINT   ns  time with communication and no computation
--   exposed_memcpy_ns  BIGINT   ns  time with a copy and neither
--   idle_ns            BIGINT   ns  time of the device's span without any
-- notes:
--   Every start and end of an activity, and every border of a slice, is an edge; what runs from
--   one edge to the next is the sum of the edges before. So the slices of a device add up to its
--   row of gpu_timeline.
WITH
    devices AS (
        SELECT
            concat_ws(' ', rank_label, 'GPU', coalesce(CAST(device AS VARCHAR), '?')) AS lane,
            rank_label,
            device,
            start_ns,
            end_ns,
            row_number() OVER (ORDER BY rank_label NULLS FIRST, device NULLS LAST) AS place
        FROM gpu_timeline
        WHERE trace_id = $trace_id
        QUALIFY place <= 8
    ),
    frame AS (
        SELECT
            min(start_ns) AS first_ns,
            max(end_ns) AS last_ns,
            greatest((max(end_ns) - min(start_ns)) // 600 + 1, 1) AS width_ns
        FROM devices
    ),
    borders AS (
        SELECT first_ns + unnest(range(601)) * width_ns AS at_ns
        FROM frame
    ),
    spans AS (
        SELECT
            devices.lane,
            kernels.ts_ns AS from_ns,
            kernels.ts_ns + kernels.dur_ns AS to_ns,
            CAST(kernels.kind IN ('compute', 'memset') AS INTEGER) AS comp,
            CAST(kernels.kind = 'comm' AS INTEGER) AS comm,
            CAST(kernels.kind = 'memcpy' AS INTEGER) AS copy
        FROM kernels
        JOIN devices
            ON devices.rank_label IS NOT DISTINCT FROM kernels.rank_label
            AND devices.device IS NOT DISTINCT FROM kernels.device
        WHERE kernels.trace_id = $trace_id
            AND kernels.ts_ns IS NOT NULL
            AND kernels.dur_ns > 0
    ),
    edges AS (
        SELECT lane, from_ns AS at_ns, comp, comm, copy, 0 AS inside FROM spans
        UNION ALL
        SELECT lane, to_ns, -comp, -comm, -copy, 0 FROM spans
        UNION ALL
        SELECT lane, start_ns, 0, 0, 0, 1 FROM devices
        UNION ALL
        SELECT lane, end_ns, 0, 0, 0, -1 FROM devices
        UNION ALL
        SELECT devices.lane, borders.at_ns, 0, 0, 0, 0
        FROM devices
        CROSS JOIN borders
    ),
    at_edges AS (
        SELECT
            lane,
            at_ns,
            sum(comp) AS comp,
            sum(comm) AS comm,
            sum(copy) AS copy,
            sum(inside) AS inside
        FROM edges
        GROUP BY lane, at_ns
    ),
    pieces AS (
        SELECT
            lane,
            at_ns,
            lead(at_ns) OVER in_order - at_ns AS dur_ns,
            sum(comp) OVER in_order > 0 AS computes,
            sum(comm) OVER in_order > 0 AS talks,
            sum(copy) OVER in_order > 0 AS copies,
            sum(inside) OVER in_order > 0 AS is_inside
        FROM at_edges
        WINDOW in_order AS (PARTITION BY lane ORDER BY at_ns)
    ),
    sliced AS (
        SELECT
            pieces.lane,
            (pieces.at_ns - frame.first_ns) // frame.width_ns AS slice,
            any_value(frame.width_ns) AS width_ns,
            any_value(frame.last_ns - frame.first_ns) AS whole_ns,
            sum(dur_ns) FILTER (WHERE computes) AS computation_ns,
            sum(dur_ns) FILTER (WHERE talks AND NOT computes) AS exposed_comm_ns,
            sum(dur_ns) FILTER (WHERE copies AND NOT talks AND NOT computes) AS exposed_memcpy_ns,
            sum(dur_ns) FILTER (
                WHERE is_inside AND NOT copies AND NOT talks AND NOT computes
            ) AS idle_ns
        FROM pieces
        CROSS JOIN frame
        GROUP BY pieces.lane, slice
    )
SELECT
    sliced.lane,
    CAST(slice * width_ns AS BIGINT) AS at_ns,
    CAST(least((slice + 1) * width_ns, whole_ns) AS BIGINT) AS until_ns,
    CAST(coalesce(computation_ns, 0) AS BIGINT) AS computation_ns,
    CAST(coalesce(exposed_comm_ns, 0) AS BIGINT) AS exposed_comm_ns,
    CAST(coalesce(exposed_memcpy_ns, 0) AS BIGINT) AS exposed_memcpy_ns,
    CAST(coalesce(idle_ns, 0) AS BIGINT) AS idle_ns
FROM sliced
JOIN devices ON devices.lane = sliced.lane
WHERE slice * width_ns < greatest(whole_ns, 1)
ORDER BY devices.place, slice;
