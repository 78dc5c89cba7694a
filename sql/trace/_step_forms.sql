-- Where the numbers of each form of annotation stand.
--
-- grain:   one row per (fields)
-- reads:   annotations
-- columns:
--   fields      VARCHAR  -  what the numbers are, a word each
--   r           INTEGER  -  place of the number of requests, from 1; NULL if not said
--   r_c         INTEGER  -  likewise, for context requests
--   r_g         INTEGER  -  likewise, for generation requests
--   t           INTEGER  -  likewise, for tokens of the step
--   c_sq        INTEGER  -  likewise, for Σ query tokens of context requests
--   c_sk        INTEGER  -  likewise, for Σ key tokens of context requests
--   c_sqsq      INTEGER  -  likewise, for Σ query²
--   c_sqsk      INTEGER  -  likewise, for Σ query · key
--   g_sq        INTEGER  -  likewise, for Σ query tokens of generation requests
--   g_sk        INTEGER  -  likewise, for Σ key tokens of generation requests
--   g_sqsq      INTEGER  -  likewise, for Σ query²
--   g_sqsk      INTEGER  -  likewise, for Σ query · key
--   t_sk        INTEGER  -  likewise, for Σ key tokens of all requests
--   t_sqsq      INTEGER  -  likewise, for Σ query² of all requests
--   t_sqsk      INTEGER  -  likewise, for Σ query · key of all requests
--   spec        INTEGER  -  likewise, for further tokens of a request by speculation
--   graph_size  INTEGER  -  likewise, for the batch that a graph is padded to
--   ctx         INTEGER  -  place of the first of the listed context lengths
--   contexts    BIGINT   -  how many of them are listed
--   is_cut      BOOLEAN  -  whether the list was cut short
CREATE OR REPLACE VIEW _step_forms AS
WITH
    distinct_fields AS (
        SELECT DISTINCT fields
        FROM annotations
        WHERE fields IS NOT NULL
    ),
    forms AS (
        SELECT
            fields,
            string_split(fields, ' ') AS words
        FROM distinct_fields
    ),
    single_words AS (
        SELECT
            fields,
            unnest(words) AS word
        FROM forms
    ),
    lists AS (
        SELECT
            fields,
            count(*) AS contexts
        FROM single_words
        WHERE word = 'ctx'
        GROUP BY fields
    )
SELECT
    forms.fields,
    nullif(list_position(forms.words, 'r'), 0) AS r,
    nullif(list_position(forms.words, 'r_c'), 0) AS r_c,
    nullif(list_position(forms.words, 'r_g'), 0) AS r_g,
    nullif(list_position(forms.words, 't'), 0) AS t,
    nullif(list_position(forms.words, 'c_sq'), 0) AS c_sq,
    nullif(list_position(forms.words, 'c_sk'), 0) AS c_sk,
    nullif(list_position(forms.words, 'c_sqsq'), 0) AS c_sqsq,
    nullif(list_position(forms.words, 'c_sqsk'), 0) AS c_sqsk,
    nullif(list_position(forms.words, 'g_sq'), 0) AS g_sq,
    nullif(list_position(forms.words, 'g_sk'), 0) AS g_sk,
    nullif(list_position(forms.words, 'g_sqsq'), 0) AS g_sqsq,
    nullif(list_position(forms.words, 'g_sqsk'), 0) AS g_sqsk,
    nullif(list_position(forms.words, 't_sk'), 0) AS t_sk,
    nullif(list_position(forms.words, 't_sqsq'), 0) AS t_sqsq,
    nullif(list_position(forms.words, 't_sqsk'), 0) AS t_sqsk,
    nullif(list_position(forms.words, 'spec'), 0) AS spec,
    nullif(list_position(forms.words, 'graph_size'), 0) AS graph_size,
    nullif(list_position(forms.words, 'ctx'), 0) AS ctx,
    coalesce(lists.contexts, 0) AS contexts,
    list_contains(forms.words, 'ctx_more') AS is_cut
FROM forms
LEFT JOIN lists ON lists.fields = forms.fields;
