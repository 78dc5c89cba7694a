-- The settings of a gate: the defaults, where nothing else is said.
--
-- grain:   one row per (baseline_runs)
-- reads:   _own_gate_settings
-- columns:
--   baseline_runs     INTEGER  -    good runs before the newest that it is compared with
--   newest_runs       INTEGER  -    newest runs that are judged together, by their median
--   min_runs          INTEGER  -    baseline runs that a number needs to be judged
--   max_slowdown_pct  DOUBLE   pct  a smaller change is never a regression
--   min_share_pct     DOUBLE   pct  ops, kernels and steps of a smaller share are not judged
--   false_alarm_pct   DOUBLE   pct  clean runs in which a metric may have an alarm by chance
--   noise_floor_pct   DOUBLE   pct  spread between runs that is assumed at least
-- notes:
--   A parameter of NULL means the default.
SELECT
    coalesce($baseline_runs::INTEGER, baseline_runs) AS baseline_runs,
    coalesce($newest_runs::INTEGER, newest_runs) AS newest_runs,
    coalesce($min_runs::INTEGER, min_runs) AS min_runs,
    coalesce($max_slowdown_pct::DOUBLE, max_slowdown_pct) AS max_slowdown_pct,
    coalesce($min_share_pct::DOUBLE, min_share_pct) AS min_share_pct,
    false_alarm_pct,
    noise_floor_pct
FROM _own_gate_settings;
