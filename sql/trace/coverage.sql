-- How much of the GPU time has a formula, and what has none.
--
-- grain:   one row per (trace_id)
-- reads:   op_perf, _launcher_calls
-- columns:
--   trace_id                  VARCHAR    -    the trace
--   op_time_ns                BIGINT     ns   GPU time of recorded op calls: the next two
--   modelled_ns               BIGINT     ns   of these, calls whose FLOPs and bytes are known
--   unmodelled_ns             BIGINT     ns   of these, calls of which one is not known
--   no_op_ns                  BIGINT     ns   GPU time without a recorded op: graphs, lone kernels
--   modelled_pct              DOUBLE     pct  modelled_ns of op_time_ns; NULL without any
--   modelled_of_all_pct       DOUBLE     pct  modelled_ns of op_time_ns and no_op_ns
--   limited_pct               DOUBLE     pct  time of calls that have a roofline, of op_time_ns
--   unmodelled_names          VARCHAR[]  -    ops of unmodelled_ns, longest first, ten at most
--   unmodelled_names_ns       BIGINT[]   ns   their times
--   unmodelled_why            VARCHAR[]  -    why FLOPs or bytes are not known
-- notes:
--   Sums are over the counted rows of op_perf, and over launch calls and lone activities without an
--   op. Each is a union per call: where calls overlap on the GPU, they add up to more than busy_ns
--   of trace_timeline.
CREATE OR REPLACE VIEW coverage AS
WITH
    counted AS (
        SELECT
            trace_id,
            name,
            why,
            kernel_time_ns,
            roofline_ns,
            flops IS NOT NULL AND bytes IS NOT NULL AS is_known
        FROM op_perf
        WHERE counted
    ),
    by_name AS (
        SELECT
            trace_id,
            name,
            min(why) FILTER (WHERE NOT is_known) AS why,
            sum(kernel_time_ns) AS time_ns,
            sum(kernel_time_ns) FILTER (WHERE is_known) AS modelled_ns,
            sum(kernel_time_ns) FILTER (WHERE NOT is_known) AS unmodelled_ns,
            sum(kernel_time_ns) FILTER (WHERE roofline_ns IS NOT NULL) AS limited_ns
        FROM counted
        GROUP BY trace_id, name
    ),
    of_ops AS (
        SELECT
            trace_id,
            sum(time_ns) AS op_time_ns,
            coalesce(sum(modelled_ns), 0) AS modelled_ns,
            coalesce(sum(unmodelled_ns), 0) AS unmodelled_ns,
            coalesce(sum(limited_ns), 0) AS limited_ns,
            list(name ORDER BY unmodelled_ns DESC, name)
                FILTER (WHERE unmodelled_ns > 0) AS names,
            list(TRY_CAST(unmodelled_ns AS BIGINT) ORDER BY unmodelled_ns DESC, name)
                FILTER (WHERE unmodelled_ns > 0) AS names_ns,
            list(why ORDER BY unmodelled_ns DESC, name)
                FILTER (WHERE unmodelled_ns > 0) AS whys
        FROM by_name
        GROUP BY trace_id
    ),
    without_op AS (
        SELECT
            trace_id,
            sum(direct_kernel_time_ns) FILTER (WHERE category IN ('launch', '(no op)')) AS no_op_ns
        FROM _launcher_calls
        GROUP BY trace_id
    )
SELECT
    trace_id,
    TRY_CAST(coalesce(op_time_ns, 0) AS BIGINT) AS op_time_ns,
    TRY_CAST(coalesce(modelled_ns, 0) AS BIGINT) AS modelled_ns,
    TRY_CAST(coalesce(unmodelled_ns, 0) AS BIGINT) AS unmodelled_ns,
    TRY_CAST(coalesce(no_op_ns, 0) AS BIGINT) AS no_op_ns,
    100.0::DOUBLE * modelled_ns / nullif(op_time_ns, 0) AS modelled_pct,
    100.0::DOUBLE * coalesce(modelled_ns, 0)
    / nullif(coalesce(op_time_ns, 0) + coalesce(no_op_ns, 0), 0) AS modelled_of_all_pct,
    100.0::DOUBLE * limited_ns / nullif(op_time_ns, 0) AS limited_pct,
    coalesce(names[1:10], []) AS unmodelled_names,
    coalesce(names_ns[1:10], []) AS unmodelled_names_ns,
    coalesce(whys[1:10], []) AS unmodelled_why
FROM without_op
FULL JOIN of_ops USING (trace_id);
