-- The defaults of the gate, in one place: what counts as a regression.
--
-- grain:   one row per (baseline_runs)
-- reads:
-- columns:
--   baseline_runs     INTEGER  -    good runs before the newest that it is compared with
--   newest_runs       INTEGER  -    newest runs that are judged together, by their median
--   min_runs          INTEGER  -    baseline runs that a number needs to be judged
--   max_slowdown_pct  DOUBLE   pct  a smaller change is never a regression
--   min_share_pct     DOUBLE   pct  ops, kernels and steps of a smaller share are not judged
--   false_alarm_pct   DOUBLE   pct  clean runs in which a metric may have an alarm by chance
--   noise_floor_pct   DOUBLE   pct  spread between runs that is assumed at least
-- notes:
--   docs/regressions.md says how they were chosen, with the rates that they give.
CREATE OR REPLACE VIEW _gate_settings AS
SELECT
    20 AS baseline_runs,
    1 AS newest_runs,
    5 AS min_runs,
    5::DOUBLE AS max_slowdown_pct,
    1::DOUBLE AS min_share_pct,
    5::DOUBLE AS false_alarm_pct,
    1::DOUBLE AS noise_floor_pct;
