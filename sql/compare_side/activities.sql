-- GPU activities of traces by the op that carries their time, by kernel and by phase.
--
-- grain:   one row per (trace_id, op, has_op, shapes, types, category, phase, kernel, kind)
-- reads:   kernels, launches, op_perf, signatures, steps
-- columns:
--   trace_id    VARCHAR  -   the trace
--   op          VARCHAR  -   op that carries the time; else launch call; else `(no op)`
--   has_op      BOOLEAN  -   whether it is an op
--   shapes      VARCHAR  -   shape per input, as text; of a list of tensors each; NULL if unknown
--   types       VARCHAR  -   type per input, as text; NULL if unknown
--   category    VARCHAR  -   category of the op; `launch`; `(no op)`
--   phase       VARCHAR  -   phase of the step that the launch starts in; `(no step)`
--   kernel      VARCHAR  -   name of the kernel, copy or fill, as it stands in the trace
--   kind        VARCHAR  -   compute, comm, memcpy or memset
--   short_name  VARCHAR  -   the name without return type, namespaces and arguments
--   place       BIGINT   -   place among the activities of a call, from 1; the first it ever has
--   activities  BIGINT   -   GPU activities
--   untimed     BIGINT   -   of these, activities whose duration is not known
--   time_ns     BIGINT   ns  known durations, summed
-- notes:
--   $traces: trace_id of each. $phase: only steps of this phase; NULL for the whole trace.
--   An activity counts for the counted row of op_perf that carries its op's time, so it is in one
--   row. A sum of durations, not a union: activities that overlap count in full. `place` is NULL
--   without an op.
WITH
    carried AS (
        SELECT
            own.trace_id,
            own.event_id AS op_id,
            carrier.event_id AS carrier_id,
            carrier.name,
            carrier.category,
            carrier.signature_id
        FROM op_perf AS own
        JOIN op_perf AS carrier
            ON carrier.trace_id = own.trace_id
            AND carrier.event_id = coalesce(own.carrier_id, own.event_id)
        WHERE own.trace_id = ANY($traces)
            AND carrier.trace_id = ANY($traces)
    ),
    known_steps AS (
        SELECT
            trace_id,
            step_id,
            phase
        FROM steps
        WHERE trace_id = ANY($traces)
    ),
    known_launches AS (
        SELECT
            trace_id,
            event_id,
            name
        FROM launches
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
    placed AS (
        SELECT
            kernels.trace_id,
            carried.carrier_id IS NOT NULL AS has_op,
            coalesce(carried.name, known_launches.name, '(no op)') AS op,
            CASE
                WHEN carried.carrier_id IS NOT NULL THEN carried.category
                WHEN known_launches.event_id IS NOT NULL THEN 'launch'
                ELSE '(no op)'
            END AS category,
            carried.signature_id,
            coalesce(known_steps.phase, '(no step)') AS phase,
            kernels.name AS kernel,
            kernels.kind,
            kernels.short_name,
            kernels.dur_ns,
            CASE
                WHEN carried.carrier_id IS NOT NULL
                    THEN row_number() OVER (
                        PARTITION BY kernels.trace_id, carried.carrier_id
                        ORDER BY kernels.ts_ns, kernels.event_id
                    )
            END AS place
        FROM kernels
        LEFT JOIN carried
            ON carried.trace_id = kernels.trace_id
            AND carried.op_id = kernels.op_id
        LEFT JOIN known_launches
            ON known_launches.trace_id = kernels.trace_id
            AND known_launches.event_id = kernels.launch_id
        LEFT JOIN known_steps
            ON known_steps.trace_id = kernels.trace_id
            AND known_steps.step_id = kernels.step_id
        WHERE kernels.trace_id = ANY($traces)
    )
SELECT
    CAST(placed.trace_id AS VARCHAR) AS trace_id,
    CAST(placed.op AS VARCHAR) AS op,
    placed.has_op,
    inputs.shapes,
    inputs.types,
    CAST(placed.category AS VARCHAR) AS category,
    CAST(placed.phase AS VARCHAR) AS phase,
    CAST(placed.kernel AS VARCHAR) AS kernel,
    CAST(placed.kind AS VARCHAR) AS kind,
    CAST(min(placed.short_name) AS VARCHAR) AS short_name,
    min(placed.place) AS place,
    count(*) AS activities,
    count(*) - count(placed.dur_ns) AS untimed,
    CAST(coalesce(sum(placed.dur_ns), 0) AS BIGINT) AS time_ns
FROM placed
LEFT JOIN inputs
    ON inputs.trace_id = placed.trace_id
    AND inputs.signature_id = placed.signature_id
WHERE CAST($phase AS VARCHAR) IS NULL
    OR placed.phase = CAST($phase AS VARCHAR)
GROUP BY
    placed.trace_id,
    placed.op,
    placed.has_op,
    inputs.shapes,
    inputs.types,
    placed.category,
    placed.phase,
    placed.kernel,
    placed.kind;
