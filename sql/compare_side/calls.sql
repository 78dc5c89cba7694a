-- Calls of traces that carry GPU time, and how far they are from the device's limit.
--
-- grain:   one row per (trace_id, op, shapes, types, category, phase)
-- reads:   kernels, launches, op_perf, signatures, steps
-- columns:
--   trace_id       VARCHAR  -   the trace
--   op             VARCHAR  -   the op; else the launch call; else `(no op)`
--   shapes         VARCHAR  -   shape per input, as text; NULL if unknown
--   types          VARCHAR  -   type per input, as text; NULL if unknown
--   category       VARCHAR  -   category of the op; `launch`; `(no op)`
--   phase          VARCHAR  -   phase of the step that the call starts in; `(no step)`
--   dtype          VARCHAR  -   type of element that the peak is taken of
--   calls          BIGINT   -   calls; activities for `(no op)`
--   limited_calls  BIGINT   -   of these, calls that have a roofline
--   limited_ns     BIGINT   ns  their GPU time: union per call, summed
--   roofline_ns    DOUBLE   ns  their least time on the device; NULL if none has a roofline
-- notes:
--   $traces: trace_id of each. $phase: only steps of this phase; NULL for the whole trace.
--   The counted rows of op_perf, and launch calls and lone activities without an op.
WITH
    known_steps AS (
        SELECT
            trace_id,
            step_id,
            phase
        FROM steps
        WHERE trace_id = ANY($traces)
    ),
    inputs AS (
        SELECT
            trace_id,
            signature_id,
            array_to_string(
                [
                    coalesce(CAST(member_dims[i] AS VARCHAR), CAST(input_dims[i] AS VARCHAR), '?')
                    FOR i IN range(1, len(input_dims) + 1)
                ],
                ', '
            ) AS shapes,
            array_to_string(input_types, ', ') AS types
        FROM signatures
        WHERE trace_id = ANY($traces)
    ),
    without_op AS (
        SELECT
            kernels.trace_id,
            coalesce(kernels.launch_id, kernels.event_id) AS call_id,
            any_value(launches.name) AS launch_name,
            min(kernels.step_id) AS step_id
        FROM kernels
        LEFT JOIN launches
            ON launches.trace_id = kernels.trace_id
            AND launches.event_id = kernels.launch_id
        WHERE kernels.trace_id = ANY($traces)
            AND kernels.op_id IS NULL
        GROUP BY kernels.trace_id, coalesce(kernels.launch_id, kernels.event_id)
    ),
    all_calls AS (
        SELECT
            trace_id,
            name AS op,
            signature_id,
            category,
            step_id,
            dtype,
            CASE WHEN roofline_ns IS NOT NULL THEN kernel_time_ns END AS limited_ns,
            roofline_ns
        FROM op_perf
        WHERE trace_id = ANY($traces)
            AND counted
        UNION ALL
        SELECT
            trace_id,
            coalesce(launch_name, '(no op)') AS op,
            NULL AS signature_id,
            CASE WHEN launch_name IS NULL THEN '(no op)' ELSE 'launch' END AS category,
            step_id,
            NULL AS dtype,
            NULL AS limited_ns,
            NULL AS roofline_ns
        FROM without_op
    )
SELECT
    CAST(all_calls.trace_id AS VARCHAR) AS trace_id,
    CAST(all_calls.op AS VARCHAR) AS op,
    inputs.shapes,
    inputs.types,
    CAST(all_calls.category AS VARCHAR) AS category,
    CAST(coalesce(known_steps.phase, '(no step)') AS VARCHAR) AS phase,
    CAST(min(all_calls.dtype) AS VARCHAR) AS dtype,
    count(*) AS calls,
    count(all_calls.roofline_ns) AS limited_calls,
    CAST(coalesce(sum(all_calls.limited_ns), 0) AS BIGINT) AS limited_ns,
    round(sum(all_calls.roofline_ns), 6) AS roofline_ns
FROM all_calls
LEFT JOIN inputs
    ON inputs.trace_id = all_calls.trace_id
    AND inputs.signature_id = all_calls.signature_id
LEFT JOIN known_steps
    ON known_steps.trace_id = all_calls.trace_id
    AND known_steps.step_id = all_calls.step_id
WHERE CAST($phase AS VARCHAR) IS NULL
    OR known_steps.phase = CAST($phase AS VARCHAR)
GROUP BY
    all_calls.trace_id,
    all_calls.op,
    inputs.shapes,
    inputs.types,
    all_calls.category,
    coalesce(known_steps.phase, '(no step)');
