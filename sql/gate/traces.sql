-- The traces that a gate reads: those of the label, and those it is compared with.
--
-- grain:   one row per (trace_id)
-- reads:   _own_trace_runs
-- columns:
--   trace_id     VARCHAR      -  the trace
--   label        VARCHAR      -  label of its job
--   run_id       VARCHAR      -  trace_id of the first trace of the run
--   run_time     TIMESTAMPTZ  -  when it was recorded
--   time_source  VARCHAR      -  recorded, file or analysed: what run_time is
-- notes:
--   Rows as in _trace_runs.
SELECT
    trace_id,
    label,
    run_id,
    run_time,
    time_source
FROM _own_trace_runs
WHERE label = $label
    OR label = $other_label
    OR run_id = $other_run;
