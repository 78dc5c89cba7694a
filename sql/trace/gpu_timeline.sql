-- Where the time of each device went: busy, idle, computation, communication and copies.
--
-- grain:   one row per (trace_id, rank_label, device)
-- reads:   _lane_timelines
-- columns:
--   trace_id            VARCHAR  -    trace the row belongs to
--   rank_label          VARCHAR  -    rank in a file of merged ranks, e.g. TP00; else NULL
--   device              BIGINT   -    GPU ordinal within the trace; NULL if not recorded
--   start_ns            BIGINT   ns   first start of a GPU activity, on the trace's clock
--   end_ns              BIGINT   ns   last end of a GPU activity, on the trace's clock
--   total_ns            BIGINT   ns   first start to last end
--   busy_ns             BIGINT   ns   time with any GPU activity
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
--   Times are unions: work that overlaps on two streams counts once. busy = computation +
--   exposed_comm + exposed_memcpy. Activities without a known start and duration do not count.
--   Activities whose device is not recorded share one row with device NULL.
CREATE OR REPLACE VIEW gpu_timeline AS
SELECT
    trace_id,
    rank_label,
    device,
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
FROM _lane_timelines
WHERE NOT is_whole;
