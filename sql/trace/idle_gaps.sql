-- Gaps on a device: times inside its window in which nothing ran on any of its streams.
--
-- grain:   one row per (trace_id, rank_label, device, next_kernel_id)
-- reads:   _lane_spans
-- columns:
--   trace_id        VARCHAR  -   trace the row belongs to
--   rank_label      VARCHAR  -   rank in a file of merged ranks, e.g. TP00; else NULL
--   device          BIGINT   -   GPU ordinal within the trace; NULL if not recorded
--   next_kernel_id  BIGINT   -   event_id of the GPU activity that ends the gap
--   prev_kernel_id  BIGINT   -   event_id of the GPU activity whose end opens the gap
--   ts_ns           BIGINT   ns  start of the gap on the trace's clock
--   dur_ns          BIGINT   ns  length of the gap; always > 0
--   cause           VARCHAR  -   why the device waited; NULL: not worked out yet
-- notes:
--   The gaps of a device add up to its idle_ns. An activity of length 0 is never busy, but splits
--   the gap it lies in. Of several activities that end together, the one that started first opens
--   the gap.
CREATE OR REPLACE VIEW idle_gaps AS
SELECT
    trace_id,
    rank_label,
    device,
    event_id AS next_kernel_id,
    last_to_end_id AS prev_kernel_id,
    TRY_CAST(start_ns - (from_ns - any_until_ns) AS BIGINT) AS ts_ns,
    TRY_CAST(from_ns - any_until_ns AS BIGINT) AS dur_ns,
    CAST(NULL AS VARCHAR) AS cause
FROM _lane_spans
WHERE NOT is_whole
    AND from_ns > any_until_ns
    AND start_ns > first_ns;
