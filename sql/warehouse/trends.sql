-- Numbers of each run over time: the whole, its steps, each op with its inputs, each kernel.
--
-- grain:   one row per (run_id, metric, subject)
-- reads:   job_runs, _trace_runs, trace_timeline, step_summary, op_args_summary, roofline,
--          kernel_summary
-- columns:
--   label        VARCHAR      -    label of the job; NULL if no file names the trace
--   metric       VARCHAR      -    what value is, see the notes
--   subject      VARCHAR      -    what it is of: (all), a phase, an op, a kernel
--   run_id       VARCHAR      -    the run: trace_id of its first trace
--   position     BIGINT       -    1 is the newest run of the label
--   run_time     TIMESTAMPTZ  -    when the run was recorded, see time_source
--   time_source  VARCHAR      -    recorded, file or analysed: what run_time is
--   is_good      BOOLEAN      -    whether all traces of the run were read whole
--   value        DOUBLE       -    the number, in unit
--   unit         VARCHAR      -    ns, pct or tokens/s
--   per          VARCHAR      -    step, trace or call: what value is per; NULL: a rate
--   worse        VARCHAR      -    up or down: which way is worse
--   share_pct    DOUBLE       pct  its time of the run's time in such rows; or NULL
--   name         VARCHAR      -    op or kernel; NULL for other subjects
--   input_dims   VARCHAR      -    shape per input of the op, as text; or NULL
--   input_types  VARCHAR      -    type per input of the op, as text; or NULL
-- notes:
--   busy_ns, total_ns, idle_ns and busy_pct are of trace_timeline. step_ns, step_host_ns: mean busy
--   time and mean host time of a step, by phase; step_span_ns: median of first start to last end on
--   the GPU, by phase and batch size r; tokens_per_s: tokens of the steps over their spans. op_ns,
--   op_call_ns: GPU time of the activities that the op launched itself, by name, shapes and types;
--   op_roofline_pct: its distance from the limit, as in roofline. kernel_ns, kernel_call_ns: GPU
--   time by kernel name. Sums are per step where each trace of the run has steps, else per trace,
--   and over the ranks of a run that is their mean. A run that was rejected has no rows. Runs are
--   matched by the text of subject, never by ids, which are of one trace.
CREATE OR REPLACE VIEW trends AS
WITH
    whole AS (
        SELECT
            _trace_runs.run_id,
            sum(trace_timeline.busy_ns)::DOUBLE AS busy_ns,
            sum(trace_timeline.total_ns)::DOUBLE AS total_ns,
            sum(trace_timeline.idle_ns)::DOUBLE AS idle_ns
        FROM _trace_runs
        JOIN trace_timeline USING (trace_id)
        GROUP BY _trace_runs.run_id
        HAVING sum(trace_timeline.total_ns) > 0
    ),
    phases AS (
        SELECT
            _trace_runs.run_id,
            step_summary.phase,
            sum(step_summary.steps * step_summary.gpu_mean_ns) AS gpu_ns,
            sum(step_summary.steps) FILTER (WHERE step_summary.gpu_mean_ns > 0) AS gpu_steps,
            sum(step_summary.steps * step_summary.cpu_mean_ns) AS host_ns,
            sum(step_summary.steps) FILTER (WHERE step_summary.cpu_mean_ns > 0) AS host_steps
        FROM _trace_runs
        JOIN step_summary USING (trace_id)
        WHERE step_summary.phase <> 'idle'
        GROUP BY _trace_runs.run_id, step_summary.phase
    ),
    batches AS (
        SELECT
            _trace_runs.run_id,
            step_summary.phase || coalesce(' r=' || step_summary.r, '') AS subject,
            sum(step_summary.steps * step_summary.span_median_ns)
            / sum(step_summary.steps) AS span_ns,
            sum(step_summary.steps * step_summary.gpu_mean_ns) AS gpu_ns
        FROM _trace_runs
        JOIN step_summary USING (trace_id)
        WHERE step_summary.phase <> 'idle'
            AND step_summary.span_median_ns > 0
        GROUP BY _trace_runs.run_id, step_summary.phase, step_summary.r
    ),
    yields AS (
        SELECT
            _trace_runs.run_id,
            coalesce(step_summary.phase, '(all)') AS subject,
            sum(step_summary.tokens)
            / sum(step_summary.tokens / step_summary.tokens_per_s) AS tokens_per_s
        FROM _trace_runs
        JOIN step_summary USING (trace_id)
        WHERE step_summary.tokens > 0
            AND step_summary.tokens_per_s > 0
        GROUP BY GROUPING SETS (
            (_trace_runs.run_id, step_summary.phase), (_trace_runs.run_id)
        )
    ),
    op_times AS (
        SELECT
            _trace_runs.run_id,
            op_args_summary.name,
            op_args_summary.input_dims,
            op_args_summary.input_types,
            sum(op_args_summary.direct_kernel_time_ns)::DOUBLE AS time_ns,
            sum(op_args_summary.count) AS calls
        FROM _trace_runs
        JOIN op_args_summary USING (trace_id)
        WHERE op_args_summary.direct_kernel_time_ns > 0
        GROUP BY ALL
    ),
    op_limits AS (
        SELECT
            _trace_runs.run_id,
            roofline.name,
            roofline.input_dims,
            roofline.input_types,
            sum(roofline.kernel_time_ns)::DOUBLE AS time_ns,
            CASE
                WHEN count(roofline.roofline_ns) = count(*) THEN sum(roofline.roofline_ns)
            END AS roofline_ns
        FROM _trace_runs
        JOIN roofline USING (trace_id)
        WHERE roofline.kernel_time_ns > 0
        GROUP BY ALL
    ),
    kernel_times AS (
        SELECT
            _trace_runs.run_id,
            kernel_summary.name,
            sum(kernel_summary.time_ns)::DOUBLE AS time_ns,
            sum(kernel_summary.count) AS calls
        FROM _trace_runs
        JOIN kernel_summary USING (trace_id)
        WHERE kernel_summary.time_ns > 0
            AND kernel_summary.name IS NOT NULL
        GROUP BY ALL
    ),
    measured AS (
        SELECT
            run_id,
            unnest(['busy_ns', 'total_ns', 'idle_ns']) AS metric,
            '(all)' AS subject,
            unnest([busy_ns, total_ns, idle_ns]) AS value,
            'ns' AS unit,
            'sum' AS per,
            'up' AS worse,
            NULL AS time_ns,
            NULL AS name,
            NULL AS input_dims,
            NULL AS input_types
        FROM whole
        UNION ALL
        SELECT
            run_id, 'busy_pct', '(all)', 100 * busy_ns / total_ns, 'pct', NULL, 'down',
            NULL, NULL, NULL, NULL
        FROM whole
        UNION ALL
        SELECT
            run_id, 'step_ns', phase, gpu_ns / gpu_steps, 'ns', 'step', 'up',
            gpu_ns, NULL, NULL, NULL
        FROM phases
        UNION ALL
        SELECT
            run_id, 'step_host_ns', phase, host_ns / host_steps, 'ns', 'step', 'up',
            host_ns, NULL, NULL, NULL
        FROM phases
        UNION ALL
        SELECT
            run_id, 'step_span_ns', subject, span_ns, 'ns', 'step', 'up',
            gpu_ns, NULL, NULL, NULL
        FROM batches
        UNION ALL
        SELECT
            run_id, 'tokens_per_s', subject, tokens_per_s, 'tokens/s', NULL, 'down',
            NULL, NULL, NULL, NULL
        FROM yields
        UNION ALL
        SELECT
            run_id,
            unnest(['op_ns', 'op_call_ns']),
            concat_ws(' ', name, input_dims, input_types),
            unnest([time_ns, time_ns / calls]),
            'ns',
            unnest(['sum', 'call']),
            'up',
            time_ns,
            name,
            input_dims,
            input_types
        FROM op_times
        UNION ALL
        SELECT
            run_id,
            'op_roofline_pct',
            concat_ws(' ', name, input_dims, input_types),
            100 * roofline_ns / time_ns,
            'pct',
            NULL,
            'down',
            time_ns,
            name,
            input_dims,
            input_types
        FROM op_limits
        UNION ALL
        SELECT
            run_id,
            unnest(['kernel_ns', 'kernel_call_ns']),
            name,
            unnest([time_ns, time_ns / calls]),
            'ns',
            unnest(['sum', 'call']),
            'up',
            time_ns,
            name,
            NULL,
            NULL
        FROM kernel_times
    )
SELECT
    job_runs.label,
    measured.metric,
    measured.subject,
    measured.run_id,
    job_runs.position,
    job_runs.run_time,
    job_runs.time_source,
    job_runs.is_good,
    CASE
        WHEN measured.per = 'sum' THEN measured.value / job_runs.divisor ELSE measured.value
    END AS value,
    measured.unit,
    CASE WHEN measured.per = 'sum' THEN job_runs.per ELSE measured.per END AS per,
    measured.worse,
    100 * measured.time_ns / sum(measured.time_ns) OVER (
        PARTITION BY measured.run_id, measured.metric
    ) AS share_pct,
    measured.name,
    measured.input_dims,
    measured.input_types
FROM measured
JOIN job_runs USING (run_id)
WHERE measured.value IS NOT NULL;
