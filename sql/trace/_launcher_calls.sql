-- Calls that GPU time is put down to: op calls, launch calls, and lone activities.
--
-- grain:   one row per (trace_id, call_id)
-- reads:   kernels, launches, ops
-- columns:
--   trace_id               VARCHAR  -   trace the row belongs to
--   call_id                BIGINT   -   event_id of the op call, launch call or activity
--   name                   VARCHAR  -   name of the op or launch call; `(no op)` for an activity
--   category               VARCHAR  -   category of the op; `launch`; `(no op)`
--   signature_id           BIGINT   -   inputs of the op call; NULL if none recorded
--   kernel_count           BIGINT   -   GPU activities it launched directly
--   direct_kernel_time_ns  BIGINT   ns  union of their intervals
--   kernel_time_ns         BIGINT   ns  union of the intervals of all activities below the call
--   host_time_ns           BIGINT   ns  host time of the call; NULL for an activity or replayed op
-- notes:
--   An activity belongs to its op; without an op to its launch; without either to itself. So every
--   activity is in exactly one row.
CREATE OR REPLACE VIEW _launcher_calls AS
WITH
    launches_without_op AS (
        SELECT
            trace_id,
            launch_id
        FROM kernels
        WHERE op_id IS NULL
            AND launch_id IS NOT NULL
    )
SELECT
    trace_id,
    event_id AS call_id,
    name,
    category,
    signature_id,
    direct_kernel_count AS kernel_count,
    direct_kernel_time_ns,
    kernel_time_ns,
    dur_ns AS host_time_ns
FROM ops
WHERE direct_kernel_count > 0
UNION ALL
SELECT
    launches.trace_id,
    launches.event_id AS call_id,
    launches.name,
    'launch' AS category,
    NULL AS signature_id,
    launches.direct_kernel_count AS kernel_count,
    launches.direct_kernel_time_ns,
    launches.direct_kernel_time_ns AS kernel_time_ns,
    launches.dur_ns AS host_time_ns
FROM launches
SEMI JOIN launches_without_op
    ON launches_without_op.trace_id = launches.trace_id
    AND launches_without_op.launch_id = launches.event_id
UNION ALL
SELECT
    trace_id,
    event_id AS call_id,
    '(no op)' AS name,
    '(no op)' AS category,
    NULL AS signature_id,
    1 AS kernel_count,
    dur_ns AS direct_kernel_time_ns,
    dur_ns AS kernel_time_ns,
    NULL AS host_time_ns
FROM kernels
WHERE op_id IS NULL
    AND launch_id IS NULL;
