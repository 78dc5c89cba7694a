-- What the annotations inside a step, and its duplicates, say of it.
--
-- grain:   one row per (trace_id, step_id)
-- reads:   _step_names
-- columns:
--   trace_id       VARCHAR  -  trace the row belongs to
--   step_id        BIGINT   -  the step
--   detail         INTEGER  -  how much the best of them says: 4 sums of products, 0 nothing
--   own_framework  VARCHAR  -  framework of those whose wording only that one writes
--   framework      VARCHAR  -  framework of the best
--   name           VARCHAR  -  wording of the best
--   phase          VARCHAR  -  phase that it states
--   r              BIGINT   -  requests
--   r_c            BIGINT   -  context requests
--   r_g            BIGINT   -  generation requests
--   t              BIGINT   -  tokens that were scheduled, as stated
--   c_sq           BIGINT   -  Σ query tokens of context requests
--   c_sk           BIGINT   -  Σ key tokens of context requests
--   c_sqsq         BIGINT   -  Σ query²
--   c_sqsk         BIGINT   -  Σ query · key
--   g_sq           BIGINT   -  Σ query tokens of generation requests
--   g_sk           BIGINT   -  Σ key tokens of generation requests
--   g_sqsq         BIGINT   -  Σ query²
--   g_sqsk         BIGINT   -  Σ query · key
--   t_sk           BIGINT   -  Σ key tokens of all requests
--   t_sqsq         BIGINT   -  Σ query² of all requests
--   t_sqsk         BIGINT   -  Σ query · key of all requests
--   graph_size     BIGINT   -  batch that the graph is padded to
-- notes:
--   A number is that of the annotation that says most, of those that say it; of equals the first.
CREATE OR REPLACE VIEW _step_inner AS
WITH
    ranked AS (
        SELECT
            trace_id,
            step_id,
            event_id,
            name,
            framework,
            is_shared OR is_generic AS is_anyones,
            phase,
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
        WHERE NOT is_step
    ),
    preferred AS (
        SELECT
            trace_id,
            step_id,
            name,
            framework,
            is_anyones,
            phase,
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
            detail,
            detail - event_id / 1e15 AS preference
        FROM ranked
    )
SELECT
    trace_id,
    step_id,
    max(detail) AS detail,
    max(framework) FILTER (WHERE NOT is_anyones) AS own_framework,
    arg_max(framework, preference) AS framework,
    arg_max(name, preference) AS name,
    arg_max(phase, preference) AS phase,
    arg_max(r, preference) AS r,
    arg_max(r_c, preference) AS r_c,
    arg_max(r_g, preference) AS r_g,
    arg_max(t, preference) AS t,
    arg_max(c_sq, preference) AS c_sq,
    arg_max(c_sk, preference) AS c_sk,
    arg_max(c_sqsq, preference) AS c_sqsq,
    arg_max(c_sqsk, preference) AS c_sqsk,
    arg_max(g_sq, preference) AS g_sq,
    arg_max(g_sk, preference) AS g_sk,
    arg_max(g_sqsq, preference) AS g_sqsq,
    arg_max(g_sqsk, preference) AS g_sqsk,
    arg_max(t_sk, preference) AS t_sk,
    arg_max(t_sqsq, preference) AS t_sqsq,
    arg_max(t_sqsk, preference) AS t_sqsk,
    arg_max(graph_size, preference) AS graph_size
FROM preferred
GROUP BY trace_id, step_id;
