-- Where the GPU time of each trace went, over all its devices together.
--
-- grain:   one row per (trace_id)
-- reads:   traces, _lane_timelines
-- columns:
--   trace_id            VARCHAR  -    the trace
--   start_ns            BIGINT   ns   first start of a GPU activity on the trace's clock; or NULL
--   end_ns              BIGINT   ns   last end of a GPU activity on the trace's clock; or NULL
--   total_ns            BIGINT   ns   first start to last end
--   busy_ns             BIGINT   ns   time with any GPU activity on any device
--   idle_ns             BIGINT   ns   time without: total less busy
--   computation_ns      BIGINT   ns   time with compute or memset activity
--   comm_ns             BIGINT   ns   time with communication
--   exposed_comm_ns     BIGINT   ns   time with communication and no computation
--   memcpy_ns           BIGINT   ns   time with a copy
--   exposed_memcpy_ns   BIGINT   ns   time with a copy and neither computation nor communication
--   total_pct           DOUBLE   pct  100; NULL if total_ns is 0
--   busy_pct            DOUBLE   pct  busy_ns of total_ns; NULL if total_ns is 0
--   idle_pct            DOUBLE   pct  idle_ns of total_ns; NULL if total_ns is 0
--   computation_pct     DOUBLE   pct  computation_ns of total_ns; NULL if total_ns is 0
--   comm_pct            DOUBLE   pct  comm_ns of total_ns; NULL if total_ns is 0
--   exposed_comm_pct    DOUBLE   pct  exposed_comm_ns of total_ns; NULL if total_ns is 0
--   memcpy_pct          DOUBLE   pct  memcpy_ns of total_ns; NULL if total_ns is 0
--   exposed_memcpy_pct  DOUBLE   pct  exposed_memcpy_ns of total_ns; NULL if total_ns is 0
-- notes:
--   A union over the devices, not a sum: the trace is busy while any of them is. Every trace has
--   its row; one without GPU activity has zeros, a rejected one NULLs: nothing is known of it.
CREATE OR REPLACE VIEW trace_timeline AS
WITH
    trace_lanes AS (
        SELECT
            trace_id,
            start_ns,
            end_ns,
            total_ns,
            busy_ns,
            idle_ns,
            computation_ns,
            comm_ns,
            exposed_comm_ns,
            memcpy_ns,
            exposed_memcpy_ns
        FROM _lane_timelines
        WHERE is_whole
            OR device_count = 1
    ),
    idle_traces AS (
        SELECT
            trace_id,
            CASE WHEN status = 'rejected' THEN NULL ELSE 0::BIGINT END AS none_ns
        FROM traces
        ANTI JOIN trace_lanes USING (trace_id)
    ),
    all_traces AS (
        SELECT
            trace_id,
            start_ns,
            end_ns,
            total_ns,
            busy_ns,
            idle_ns,
            computation_ns,
            comm_ns,
            exposed_comm_ns,
            memcpy_ns,
            exposed_memcpy_ns
        FROM trace_lanes
        UNION ALL
        SELECT
            trace_id,
            NULL AS start_ns,
            NULL AS end_ns,
            none_ns AS total_ns,
            none_ns AS busy_ns,
            none_ns AS idle_ns,
            none_ns AS computation_ns,
            none_ns AS comm_ns,
            none_ns AS exposed_comm_ns,
            none_ns AS memcpy_ns,
            none_ns AS exposed_memcpy_ns
        FROM idle_traces
    )
SELECT
    trace_id,
    start_ns,
    end_ns,
    total_ns,
    busy_ns,
    idle_ns,
    computation_ns,
    comm_ns,
    exposed_comm_ns,
    memcpy_ns,
    exposed_memcpy_ns,
    100.0::DOUBLE * total_ns / nullif(total_ns, 0) AS total_pct,
    100.0::DOUBLE * busy_ns / nullif(total_ns, 0) AS busy_pct,
    100.0::DOUBLE * idle_ns / nullif(total_ns, 0) AS idle_pct,
    100.0::DOUBLE * computation_ns / nullif(total_ns, 0) AS computation_pct,
    100.0::DOUBLE * comm_ns / nullif(total_ns, 0) AS comm_pct,
    100.0::DOUBLE * exposed_comm_ns / nullif(total_ns, 0) AS exposed_comm_pct,
    100.0::DOUBLE * memcpy_ns / nullif(total_ns, 0) AS memcpy_pct,
    100.0::DOUBLE * exposed_memcpy_ns / nullif(total_ns, 0) AS exposed_memcpy_pct
FROM all_traces;
