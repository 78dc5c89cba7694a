-- The kernels below each op with its inputs: their time in the newest runs and before.
--
-- grain:   one row per (subject, kernel)
-- reads:   job_runs, _trace_runs, _gate_runs, kernels, ops, signatures
-- columns:
--   subject   VARCHAR  -   the op with shapes and types, as in trends
--   kernel    VARCHAR  -   name of the kernel
--   value     DOUBLE   ns  its time per step or trace: median of the newest runs; NULL if none
--   baseline  DOUBLE   ns  the same of the baseline runs; NULL if none
-- notes:
--   Of the ops whose subject is asked for. A kernel belongs to the op that launched it.
WITH
    times AS (
        SELECT
            _trace_runs.run_id,
            concat_ws(
                ' ',
                ops.name,
                CAST(signatures.input_dims AS VARCHAR),
                CAST(signatures.input_types AS VARCHAR)
            ) AS subject,
            kernels.name AS kernel,
            sum(kernels.dur_ns)::DOUBLE AS time_ns
        FROM _gate_runs
        JOIN _trace_runs ON _trace_runs.run_id = _gate_runs.run_id
        JOIN kernels ON kernels.trace_id = _trace_runs.trace_id
        JOIN ops ON ops.trace_id = kernels.trace_id AND ops.event_id = kernels.op_id
        LEFT JOIN signatures
            ON signatures.trace_id = ops.trace_id
            AND signatures.signature_id = ops.signature_id
        WHERE kernels.trace_id = ANY($traces)
            AND ops.trace_id = ANY($traces)
            AND ops.name = ANY($names)
        GROUP BY ALL
    )
SELECT
    times.subject,
    times.kernel,
    median(times.time_ns / job_runs.divisor) FILTER (WHERE _gate_runs.side = 'newest') AS value,
    median(times.time_ns / job_runs.divisor) FILTER (WHERE _gate_runs.side = 'baseline') AS baseline
FROM times
JOIN job_runs ON job_runs.run_id = times.run_id
JOIN _gate_runs ON _gate_runs.run_id = times.run_id
WHERE times.subject = ANY($subjects)
GROUP BY times.subject, times.kernel
ORDER BY abs(coalesce(value, 0) - coalesce(baseline, 0)) DESC, times.kernel;
