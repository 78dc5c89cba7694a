-- Steps of serving and training: what ran in each, for how long, and how busy the GPU was.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   ops, _step_names, _step_inner, _step_gaps
-- columns:
--   trace_id           VARCHAR  -   trace the row belongs to
--   step_id            BIGINT   -   0, 1, 2 … in order of time within the trace
--   event_id           BIGINT   -   the annotation: of nested ones the outermost
--   framework          VARCHAR  -   framework that wrote it; NULL if unknown
--   annotation         VARCHAR  -   the wording: of nested ones the one that says most
--   phase              VARCHAR  -   prefill, decode, mixed, idle, diffusion, training or other
--   r                  BIGINT   -   requests (images, of diffusion)
--   r_c                BIGINT   -   context requests (prefill)
--   r_g                BIGINT   -   generation requests (decode)
--   c_sq               BIGINT   -   Σ query tokens of context requests
--   c_sk               BIGINT   -   Σ key tokens of context requests
--   c_sqsq             BIGINT   -   Σ query² of context requests
--   c_sqsk             BIGINT   -   Σ query · key of context requests
--   g_sq               BIGINT   -   Σ query tokens of generation requests
--   g_sk               BIGINT   -   Σ key tokens of generation requests
--   g_sqsq             BIGINT   -   Σ query² of generation requests
--   g_sqsk             BIGINT   -   Σ query · key of generation requests
--   ts_ns              BIGINT   ns  start of the annotation on the trace's clock
--   cpu_dur_ns         BIGINT   ns  its length on the host; NULL if only the GPU has it
--   gpu_busy_ns        BIGINT   ns  time with any GPU activity of the step
--   gpu_span_ns        BIGINT   ns  first start to last end of its GPU activities; NULL if none
--   kernels            BIGINT   -   its GPU activities: kernels, copies and fills
--   gap_before_ns      BIGINT   ns  end of the step before it on the host to its start
--   tokens             BIGINT   -   query tokens of all requests
--   tokens_per_s       DOUBLE   -   tokens a second of gpu_span_ns
--   graph              VARCHAR  -   full: one graph launch; piecewise: several; eager: none
--   gpu_gap_before_ns  BIGINT   ns  end of the GPU work before it, of a step, to its own start
--   t_sk               BIGINT   -   Σ key tokens of all requests
--   t_sqsq             BIGINT   -   Σ query² of all requests
--   t_sqsk             BIGINT   -   Σ query · key of all requests
--   graph_size         BIGINT   -   requests that its graph is padded to, where the wording says it
--   process            VARCHAR  -   process id, as text; NULL if only the GPU has the step
--   violated           VARCHAR  -   relations between the sums that do not hold; NULL if all do
-- notes:
--   NULL is what the annotation does not say and what does not follow from it, never 0. The step
--   before is that of the same process; both gaps are negative where the two overlap. Work belongs
--   to the step around its launch, whenever it ran. Where r_g counts requests that may still be in
--   prefill (execute_new_…_cached_…) it is an upper bound. A ProfilerStep is of phase training if
--   its trace has a backward pass. Dummy runs, captures and draft models' sub-steps are no steps:
--   they stand in annotations.
CREATE OR REPLACE VIEW steps AS
WITH
    trained AS (
        SELECT DISTINCT trace_id
        FROM ops
        WHERE step_id IS NOT NULL
            AND starts_with(name, 'autograd::engine::')
    ),
    own AS (
        SELECT
            trace_id,
            step_id,
            event_id,
            name,
            framework,
            is_shared OR is_generic AS is_anyones,
            phase,
            side,
            process,
            ts_ns,
            dur_ns,
            kernel_count,
            kernel_time_ns,
            r,
            r_c,
            r_g,
            t,
            c_sq,
            c_sk,
            c_sqsq,
            c_sqsk,
            g_sq,
            g_sk,
            g_sqsq,
            g_sqsk,
            t_sk,
            t_sqsq,
            t_sqsk,
            graph_size,
            detail
        FROM _step_names
        WHERE is_step
    ),
    said AS (
        SELECT
            own.trace_id,
            own.step_id,
            own.event_id,
            own.side,
            own.process,
            own.ts_ns,
            own.dur_ns,
            own.kernel_count,
            own.kernel_time_ns,
            coalesce(
                CASE WHEN NOT own.is_anyones THEN own.framework END,
                inside.own_framework,
                CASE WHEN inside.detail > own.detail THEN inside.framework END,
                own.framework
            ) AS framework,
            CASE WHEN inside.detail > own.detail THEN inside.name ELSE own.name END AS name,
            CASE WHEN inside.detail > own.detail THEN inside.phase ELSE own.phase END AS phase,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.r, own.r)
                ELSE coalesce(own.r, inside.r)
            END AS r,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.r_c, own.r_c)
                ELSE coalesce(own.r_c, inside.r_c)
            END AS r_c,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.r_g, own.r_g)
                ELSE coalesce(own.r_g, inside.r_g)
            END AS r_g,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.t, own.t)
                ELSE coalesce(own.t, inside.t)
            END AS t,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.c_sq, own.c_sq)
                ELSE coalesce(own.c_sq, inside.c_sq)
            END AS c_sq,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.c_sk, own.c_sk)
                ELSE coalesce(own.c_sk, inside.c_sk)
            END AS c_sk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.c_sqsq, own.c_sqsq)
                ELSE coalesce(own.c_sqsq, inside.c_sqsq)
            END AS c_sqsq,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.c_sqsk, own.c_sqsk)
                ELSE coalesce(own.c_sqsk, inside.c_sqsk)
            END AS c_sqsk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.g_sq, own.g_sq)
                ELSE coalesce(own.g_sq, inside.g_sq)
            END AS g_sq,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.g_sk, own.g_sk)
                ELSE coalesce(own.g_sk, inside.g_sk)
            END AS g_sk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.g_sqsq, own.g_sqsq)
                ELSE coalesce(own.g_sqsq, inside.g_sqsq)
            END AS g_sqsq,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.g_sqsk, own.g_sqsk)
                ELSE coalesce(own.g_sqsk, inside.g_sqsk)
            END AS g_sqsk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.t_sk, own.t_sk)
                ELSE coalesce(own.t_sk, inside.t_sk)
            END AS t_sk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.t_sqsq, own.t_sqsq)
                ELSE coalesce(own.t_sqsq, inside.t_sqsq)
            END AS t_sqsq,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.t_sqsk, own.t_sqsk)
                ELSE coalesce(own.t_sqsk, inside.t_sqsk)
            END AS t_sqsk,
            CASE
                WHEN inside.detail > own.detail THEN coalesce(inside.graph_size, own.graph_size)
                ELSE coalesce(own.graph_size, inside.graph_size)
            END AS graph_size
        FROM own
        LEFT JOIN _step_inner AS inside
            ON inside.trace_id = own.trace_id
            AND inside.step_id = own.step_id
    ),
    measured AS (
        SELECT
            said.trace_id,
            said.step_id,
            said.event_id,
            said.framework,
            said.name,
            said.phase AS stated_phase,
            coalesce(said.r_c, said.c_sq) AS context,
            coalesce(said.r_g, said.g_sq) AS generation,
            trained.trace_id IS NOT NULL AS is_trained,
            said.r,
            said.r_c,
            said.r_g,
            said.t,
            said.c_sq,
            said.c_sk,
            said.c_sqsq,
            said.c_sqsk,
            said.g_sq,
            said.g_sk,
            said.g_sqsq,
            said.g_sqsk,
            said.t_sk,
            said.t_sqsq,
            said.t_sqsk,
            said.graph_size,
            said.ts_ns,
            CASE WHEN said.side = 'cpu' THEN said.dur_ns END AS cpu_dur_ns,
            said.process,
            said.kernel_count,
            said.kernel_time_ns,
            coalesce(CAST(said.c_sq AS HUGEINT) + said.g_sq, said.t) AS tokens,
            gaps.gap_before_ns,
            gaps.gpu_gap_before_ns,
            gaps.gpu_end_ns - gaps.gpu_start_ns AS gpu_span_ns,
            gaps.launches,
            gaps.graph_launches
        FROM said
        LEFT JOIN _step_gaps AS gaps
            ON gaps.trace_id = said.trace_id
            AND gaps.step_id = said.step_id
        LEFT JOIN trained ON trained.trace_id = said.trace_id
    )
SELECT
    trace_id,
    step_id,
    event_id,
    framework,
    name AS annotation,
    CASE
        WHEN stated_phase = 'training' THEN CASE WHEN is_trained THEN 'training' ELSE 'other' END
        WHEN stated_phase IN ('diffusion', 'idle', 'other') THEN stated_phase
        WHEN context > 0 AND generation > 0 THEN 'mixed'
        WHEN context > 0 THEN 'prefill'
        WHEN generation > 0 THEN 'decode'
        WHEN context = 0 AND generation = 0 OR r = 0 THEN 'idle'
        ELSE coalesce(stated_phase, 'other')
    END AS phase,
    r,
    r_c,
    r_g,
    c_sq,
    c_sk,
    c_sqsq,
    c_sqsk,
    g_sq,
    g_sk,
    g_sqsq,
    g_sqsk,
    ts_ns,
    cpu_dur_ns,
    coalesce(kernel_time_ns, 0) AS gpu_busy_ns,
    TRY_CAST(gpu_span_ns AS BIGINT) AS gpu_span_ns,
    coalesce(kernel_count, 0) AS kernels,
    gap_before_ns,
    TRY_CAST(tokens AS BIGINT) AS tokens,
    1e9::DOUBLE * tokens / nullif(gpu_span_ns, 0) AS tokens_per_s,
    CASE
        WHEN graph_launches = 1 THEN 'full'
        WHEN graph_launches > 1 THEN 'piecewise'
        WHEN launches > 0 THEN 'eager'
    END AS graph,
    gpu_gap_before_ns,
    t_sk,
    t_sqsq,
    t_sqsk,
    graph_size,
    process,
    nullif(concat_ws(
        ', ',
        CASE WHEN c_sk < c_sq THEN 'c_sk < c_sq' END,
        CASE WHEN c_sqsk < c_sqsq THEN 'c_sqsk < c_sqsq' END,
        CASE
            WHEN c_sqsq > CAST(c_sq AS DOUBLE) * c_sq THEN 'c_sqsq > c_sq²'
        END,
        CASE
            WHEN CAST(c_sqsq AS DOUBLE) * r_c < CAST(c_sq AS DOUBLE) * c_sq
                THEN 'c_sqsq · r_c < c_sq²'
        END,
        CASE WHEN g_sk < g_sq THEN 'g_sk < g_sq' END,
        CASE WHEN g_sqsk < g_sqsq THEN 'g_sqsk < g_sqsq' END,
        CASE
            WHEN g_sqsq > CAST(g_sq AS DOUBLE) * g_sq THEN 'g_sqsq > g_sq²'
        END,
        CASE
            WHEN CAST(g_sqsq AS DOUBLE) * r_g < CAST(g_sq AS DOUBLE) * g_sq
                THEN 'g_sqsq · r_g < g_sq²'
        END
    ), '') AS violated
FROM measured;
