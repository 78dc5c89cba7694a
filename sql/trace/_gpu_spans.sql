-- GPU activities whose interval is known.
--
-- grain:   one row per (trace_id, event_id)
-- reads:   kernels
-- columns:
--   trace_id    VARCHAR  -   trace the row belongs to
--   event_id    BIGINT   -   the GPU activity
--   rank_label  VARCHAR  -   rank in a file of merged ranks; else NULL
--   device      BIGINT   -   device it ran on; NULL if not recorded
--   kind        VARCHAR  -   compute, comm, memcpy or memset
--   start_ns    HUGEINT  ns  start on the trace's clock
--   end_ns      HUGEINT  ns  end on the trace's clock; not before start_ns
-- notes:
--   HUGEINT, so that no sum of hostile times overflows.
CREATE OR REPLACE VIEW _gpu_spans AS
SELECT
    trace_id,
    event_id,
    rank_label,
    device,
    kind,
    CAST(ts_ns AS HUGEINT) AS start_ns,
    CAST(ts_ns AS HUGEINT) + dur_ns AS end_ns
FROM kernels
WHERE ts_ns IS NOT NULL
    AND dur_ns IS NOT NULL;
