-- What each annotation that names a step says of it, and what follows from that.
--
-- grain:   one row per (trace_id, event_id)
-- reads:   annotations, step_grammars, _step_forms
-- columns:
--   trace_id        VARCHAR  -   trace the row belongs to
--   event_id        BIGINT   -   the annotation
--   step_id         BIGINT   -   the step that it names
--   is_step         BOOLEAN  -   whether it is the step, not one inside it or a duplicate
--   name            VARCHAR  -   its wording
--   framework       VARCHAR  -   framework that writes so; NULL if several do
--   is_shared       BOOLEAN  -   whether other frameworks write so too
--   is_generic      BOOLEAN  -   whether it says nothing of requests and may hold steps that do
--   side            VARCHAR  -   cpu, or gpu where only the GPU has it
--   process         VARCHAR  -   process id, as text
--   ts_ns           BIGINT   ns  start of the annotation
--   dur_ns          BIGINT   ns  its length
--   kernel_count    BIGINT   -   GPU activities of the step; NULL if it is not the step
--   kernel_time_ns  BIGINT   ns  union of their intervals; likewise
--   phase           VARCHAR  -   phase that the rule states; NULL if the counts say it
--   r               BIGINT   -   requests
--   r_c             BIGINT   -   context requests
--   r_g             BIGINT   -   generation requests
--   t               BIGINT   -   tokens that were scheduled, as stated
--   c_sq            BIGINT   -   Σ query tokens of context requests
--   c_sk            BIGINT   -   Σ key tokens of context requests
--   c_sqsq          BIGINT   -   Σ query²
--   c_sqsk          BIGINT   -   Σ query · key
--   g_sq            BIGINT   -   Σ query tokens of generation requests
--   g_sk            BIGINT   -   Σ key tokens of generation requests
--   g_sqsq          BIGINT   -   Σ query²
--   g_sqsk          BIGINT   -   Σ query · key
--   t_sk            BIGINT   -   Σ key tokens of all requests
--   t_sqsq          BIGINT   -   Σ query² of all requests
--   t_sqsk          BIGINT   -   Σ query · key of all requests
--   graph_size      BIGINT   -   batch that the graph is padded to
--   detail          INTEGER  -   how much it says: 4 sums of products, 0 nothing
-- notes:
--   NULL is what the annotation does not say. It follows: what a phase has no requests for is 0;
--   of one request Σq² = (Σq)² and Σqk = Σq · Σk; where each has one token Σq² = Σq and Σqk = Σk;
--   of requests listed one by one without a cached prefix Σq² = Σqk = Σk². Of a step with both
--   kinds of which only the totals are stated, those of context are the rest, if none is negative.
--   What is 0 for want of requests, or assumed, adds nothing to detail: another annotation of the
--   step may have it recorded. Counts that are bounds say nothing of sums. A number has at most 18
--   digits, so that sums and differences of two fit; products may not: they are HUGEINT on the way,
--   NULL if too large.
CREATE OR REPLACE VIEW _step_names AS
WITH
    said AS (
        SELECT
            notes.trace_id,
            notes.event_id,
            notes.step_id,
            notes.role = 'step' AS is_step,
            notes.name,
            notes.side,
            notes.process,
            notes.ts_ns,
            notes.dur_ns,
            notes.kernel_count,
            notes.kernel_time_ns,
            grammars.framework,
            grammars.phase,
            contains(grammars.traits, 'shared') AS is_shared,
            contains(grammars.traits, 'generic') AS is_generic,
            contains(grammars.traits, 'bounds') AS is_bounds,
            contains(grammars.traits, 'one_each') AS is_one_each,
            notes.numbers[forms.r] AS r,
            notes.numbers[forms.r_c] AS r_c,
            notes.numbers[forms.r_g] AS r_g,
            notes.numbers[forms.t] AS t,
            notes.numbers[forms.c_sq] AS c_sq,
            notes.numbers[forms.c_sk] AS c_sk,
            notes.numbers[forms.c_sqsq] AS c_sqsq,
            notes.numbers[forms.c_sqsk] AS c_sqsk,
            notes.numbers[forms.g_sq] AS g_sq,
            notes.numbers[forms.g_sk] AS g_sk,
            notes.numbers[forms.g_sqsq] AS g_sqsq,
            notes.numbers[forms.g_sqsk] AS g_sqsk,
            notes.numbers[forms.t_sk] AS t_sk,
            notes.numbers[forms.t_sqsq] AS t_sqsq,
            notes.numbers[forms.t_sqsk] AS t_sqsk,
            notes.numbers[forms.spec] AS spec,
            notes.numbers[forms.graph_size] AS graph_size,
            CASE
                WHEN forms.contexts > 0 AND NOT forms.is_cut
                    THEN list_slice(notes.numbers, forms.ctx, forms.ctx + forms.contexts - 1)
            END AS ctx
        FROM annotations AS notes
        JOIN step_grammars AS grammars ON grammars.rule = notes.rule
        JOIN _step_forms AS forms ON forms.fields = notes.fields
        WHERE notes.step_id IS NOT NULL
            AND (notes.role = 'step' OR notes.why IN ('nested', 'duplicate'))
    ),
    counted AS (
        SELECT
            said.* REPLACE (
                CASE
                    WHEN phase = 'idle' THEN 0
                    WHEN r_c IS NOT NULL THEN r_c
                    WHEN phase = 'decode' THEN 0
                    WHEN phase = 'prefill' AND r_g IS NULL THEN r
                    WHEN r >= r_g THEN r - r_g
                END AS r_c,
                CASE
                    WHEN phase = 'idle' THEN 0
                    WHEN r_g IS NOT NULL THEN r_g
                    WHEN phase = 'prefill' THEN 0
                    WHEN phase = 'decode' AND r_c IS NULL THEN r
                    WHEN r >= r_c THEN r - r_c
                END AS r_g,
                coalesce(spec, 0) AS spec
            )
        FROM said
    ),
    kinds AS (
        SELECT
            counted.*,
            r_c = 0 AND (NOT is_bounds OR r_g = 0) AS has_no_c,
            r_g = 0 AND (NOT is_bounds OR r_c = 0) AS has_no_g
        FROM counted
    ),
    tokens AS (
        SELECT
            kinds.* REPLACE (
                CASE
                    WHEN c_sq IS NOT NULL THEN c_sq
                    WHEN has_no_c THEN 0
                    WHEN has_no_g THEN t
                END AS c_sq,
                CASE
                    WHEN g_sq IS NOT NULL THEN g_sq
                    WHEN has_no_g THEN 0
                    WHEN has_no_c AND t IS NOT NULL THEN t
                    WHEN is_one_each THEN TRY_CAST(CAST(r_g AS HUGEINT) * (1 + spec) AS BIGINT)
                END AS g_sq
            ),
            g_sq IS NULL AND is_one_each AND NOT (has_no_c AND t IS NOT NULL)
                AS is_assumed,
            c_sq IS NULL AND r_c > 0 AND r_g > 0 AND t IS NOT NULL AS is_rest
        FROM kinds
    ),
    wholes AS (
        SELECT
            tokens.* REPLACE (
                CASE
                    WHEN c_sk IS NOT NULL THEN c_sk
                    WHEN has_no_c THEN 0
                    WHEN has_no_g AND t_sk IS NOT NULL THEN t_sk
                    WHEN list_count(ctx) = r_c THEN TRY_CAST(list_sum(ctx) AS BIGINT)
                END AS c_sk,
                CASE
                    WHEN c_sqsq IS NOT NULL THEN c_sqsq
                    WHEN has_no_c THEN 0
                    WHEN has_no_g AND t_sqsq IS NOT NULL THEN t_sqsq
                END AS c_sqsq,
                CASE
                    WHEN c_sqsk IS NOT NULL THEN c_sqsk
                    WHEN has_no_c THEN 0
                    WHEN has_no_g AND t_sqsk IS NOT NULL THEN t_sqsk
                END AS c_sqsk,
                CASE
                    WHEN g_sk IS NOT NULL THEN g_sk
                    WHEN has_no_g THEN 0
                    WHEN has_no_c AND t_sk IS NOT NULL THEN t_sk
                END AS g_sk,
                CASE
                    WHEN g_sqsq IS NOT NULL THEN g_sqsq
                    WHEN has_no_g THEN 0
                    WHEN has_no_c AND t_sqsq IS NOT NULL THEN t_sqsq
                    WHEN is_assumed
                        THEN TRY_CAST(CAST(g_sq AS HUGEINT) * (1 + spec) AS BIGINT)
                    WHEN g_sq = r_g THEN g_sq
                    WHEN r_g = 1 THEN TRY_CAST(CAST(g_sq AS HUGEINT) * g_sq AS BIGINT)
                END AS g_sqsq,
                CASE
                    WHEN g_sqsk IS NOT NULL THEN g_sqsk
                    WHEN has_no_g THEN 0
                    WHEN has_no_c AND t_sqsk IS NOT NULL THEN t_sqsk
                END AS g_sqsk,
                is_rest AND g_sq IS NOT NULL AS is_rest
            )
        FROM tokens
    ),
    rests AS (
        SELECT
            wholes.*,
            t >= g_sq AND coalesce(t_sqsq >= g_sqsq, TRUE) AS is_possible
        FROM wholes
    ),
    parts AS (
        SELECT
            rests.* REPLACE (
                CASE
                    WHEN is_rest AND is_possible THEN t - g_sq
                    WHEN NOT is_rest THEN c_sq
                END AS c_sq,
                CASE
                    WHEN c_sqsq IS NOT NULL THEN c_sqsq
                    WHEN is_rest AND is_possible THEN t_sqsq - g_sqsq
                END AS c_sqsq,
                CASE WHEN NOT (is_rest AND is_assumed AND NOT is_possible) THEN g_sq END AS g_sq,
                CASE WHEN NOT (is_rest AND is_assumed AND NOT is_possible) THEN g_sqsq END AS g_sqsq
            )
        FROM rests
    ),
    lists AS (
        SELECT
            parts.*,
            CASE
                WHEN list_count(ctx) = r_c AND list_sum(ctx) = c_sq AND c_sq <= 90000000
                    THEN CAST(
                        list_dot_product(CAST(ctx AS DOUBLE[]), CAST(ctx AS DOUBLE[])) AS BIGINT
                    )
            END AS uncached_sqsq
        FROM parts
    ),
    derived AS (
        SELECT
            lists.* REPLACE (
                coalesce(r, r_c + r_g) AS r,
                CASE WHEN c_sk IS NULL AND c_sq = r_c THEN c_sqsk ELSE c_sk END AS c_sk,
                CASE
                    WHEN c_sqsq IS NOT NULL THEN c_sqsq
                    WHEN r_c = 1 THEN TRY_CAST(CAST(c_sq AS HUGEINT) * c_sq AS BIGINT)
                    WHEN c_sq = r_c THEN c_sq
                    ELSE uncached_sqsq
                END AS c_sqsq,
                CASE
                    WHEN c_sqsk IS NOT NULL THEN c_sqsk
                    WHEN r_c = 1 THEN TRY_CAST(CAST(c_sq AS HUGEINT) * c_sk AS BIGINT)
                    WHEN c_sq = r_c THEN c_sk
                    ELSE uncached_sqsq
                END AS c_sqsk,
                CASE WHEN g_sk IS NULL AND g_sq = r_g THEN g_sqsk ELSE g_sk END AS g_sk,
                CASE
                    WHEN g_sqsk IS NOT NULL THEN g_sqsk
                    WHEN r_g = 1 THEN TRY_CAST(CAST(g_sq AS HUGEINT) * g_sk AS BIGINT)
                    WHEN g_sq = r_g THEN g_sk
                END AS g_sqsk
            )
        FROM lists
    )
SELECT
    trace_id,
    event_id,
    step_id,
    is_step,
    name,
    framework,
    is_shared,
    is_generic,
    side,
    process,
    ts_ns,
    dur_ns,
    kernel_count,
    kernel_time_ns,
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
    coalesce(t_sk, TRY_CAST(CAST(c_sk AS HUGEINT) + g_sk AS BIGINT))
        AS t_sk,
    coalesce(t_sqsq, TRY_CAST(CAST(c_sqsq AS HUGEINT) + g_sqsq AS BIGINT))
        AS t_sqsq,
    coalesce(t_sqsk, TRY_CAST(CAST(c_sqsk AS HUGEINT) + g_sqsk AS BIGINT))
        AS t_sqsk,
    graph_size,
    CASE
        WHEN c_sqsk IS NOT NULL AND has_no_c IS NOT TRUE THEN 4
        WHEN g_sqsk IS NOT NULL AND has_no_g IS NOT TRUE THEN 4
        WHEN c_sq IS NOT NULL AND has_no_c IS NOT TRUE THEN 3
        WHEN g_sq IS NOT NULL AND has_no_g IS NOT TRUE AND NOT is_assumed THEN 3
        WHEN coalesce(r_c, r_g) IS NOT NULL THEN 2
        WHEN NOT is_generic THEN 1
        ELSE 0
    END AS detail
FROM derived;
