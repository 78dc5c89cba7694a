-- Attention of serving steps by phase, op and heads: what it did, how fast, how far from the limit.
--
-- grain:   one row per (trace_id, phase, name, part, h_q, h_kv, d_qk, d_v, window_keys, dtype,
--          kv_bits)
-- reads:   attention_roofline
-- columns:
--   trace_id        VARCHAR  -           the trace
--   phase           VARCHAR  -           of the steps: prefill, decode, mixed …; NULL if unknown
--   name            VARCHAR  -           the op
--   part            VARCHAR  -           requests it is for: all, context, generation; or NULL
--   h_q             BIGINT   -           query heads on the rank; NULL if unknown
--   h_kv            BIGINT   -           heads of keys and values on the rank; NULL if unknown
--   d_qk            BIGINT   -           width of a query and a key; NULL if unknown
--   d_v             BIGINT   -           width of a value; NULL if unknown
--   window_keys     BIGINT   -           keys that a token sees; NULL for all of its request
--   dtype           VARCHAR  -           type of the queries; NULL if unknown
--   kv_bits         BIGINT   -           bits of a number in the KV cache; NULL if unknown
--   source          VARCHAR  -           where heads and widths are from; NULL if unknown
--   steps           BIGINT   -           steps with such a call
--   calls           BIGINT   -           calls
--   kernel_time_ns  BIGINT   ns          time of their GPU activities, summed over calls
--   mean_ns         DOUBLE   ns          mean time of a call
--   flops           BIGINT   flops       of all calls; NULL if those of one are unknown
--   bytes           BIGINT   bytes       of all calls; NULL if those of one are unknown
--   flops_seed      BIGINT   flops       by the published formula
--   bytes_seed      BIGINT   bytes       by the published formula
--   flops_min       BIGINT   flops       the least they can be
--   flops_max       BIGINT   flops       the most they can be; NULL where one has no limit
--   bytes_min       BIGINT   bytes       the least they can be
--   bytes_max       BIGINT   bytes       the most they can be; NULL where one has no limit
--   flops_per_byte  DOUBLE   flops/byte  flops / bytes
--   tflops_s        DOUBLE   TFLOPS/s    flops / kernel_time_ns
--   tb_s            DOUBLE   TB/s        bytes / kernel_time_ns
--   arch            VARCHAR  -           device whose peaks are used; NULL if it is not known
--   roofline_ns     DOUBLE   ns          least time on the device, of all calls; NULL if unknown
--   roofline_pct    DOUBLE   pct         roofline_ns / kernel_time_ns: 100 is at the limit
--   bound           VARCHAR  -           compute or memory; mixed where calls differ
--   why             VARCHAR  -           why something is NULL
--   note            VARCHAR  -           what to know about the numbers
-- notes:
--   Sums over sums: a rate is the work of all calls over the time of all calls. How the bounds are
--   derived where a step tells only its tokens stands with attention_roofline.
CREATE OR REPLACE VIEW attention_summary AS
WITH
    grouped AS (
        SELECT
            trace_id,
            phase,
            name,
            part,
            h_q,
            h_kv,
            d_qk,
            d_v,
            window_keys,
            dtype,
            kv_bits,
            min(source) AS source,
            count(DISTINCT step_id) AS steps,
            count(*) AS calls,
            TRY_CAST(sum(kernel_time_ns) AS BIGINT) AS kernel_time_ns,
            avg(kernel_time_ns) AS mean_ns,
            CASE WHEN count(flops) = count(*) THEN TRY_CAST(sum(flops) AS BIGINT) END AS flops,
            CASE WHEN count(bytes) = count(*) THEN TRY_CAST(sum(bytes) AS BIGINT) END AS bytes,
            CASE
                WHEN count(flops_seed) = count(*) THEN TRY_CAST(sum(flops_seed) AS BIGINT)
            END AS flops_seed,
            CASE
                WHEN count(bytes_seed) = count(*) THEN TRY_CAST(sum(bytes_seed) AS BIGINT)
            END AS bytes_seed,
            CASE
                WHEN count(flops_min) = count(*) THEN TRY_CAST(sum(flops_min) AS BIGINT)
            END AS flops_min,
            CASE
                WHEN count(flops_max) = count(*) THEN TRY_CAST(sum(flops_max) AS BIGINT)
            END AS flops_max,
            CASE
                WHEN count(bytes_min) = count(*) THEN TRY_CAST(sum(bytes_min) AS BIGINT)
            END AS bytes_min,
            CASE
                WHEN count(bytes_max) = count(*) THEN TRY_CAST(sum(bytes_max) AS BIGINT)
            END AS bytes_max,
            min(arch) AS arch,
            CASE
                WHEN count(roofline_ns) = count(*) THEN round(sum(roofline_ns), 6)
            END AS roofline_ns,
            CASE
                WHEN count(bound) < count(*) THEN NULL
                WHEN min(bound) = max(bound) THEN min(bound)
                ELSE 'mixed'
            END AS bound,
            min(why) AS why,
            min(note) AS note
        FROM attention_roofline
        GROUP BY
            trace_id,
            phase,
            name,
            part,
            h_q,
            h_kv,
            d_qk,
            d_v,
            window_keys,
            dtype,
            kv_bits
    )
SELECT
    trace_id,
    phase,
    name,
    part,
    h_q,
    h_kv,
    d_qk,
    d_v,
    window_keys,
    dtype,
    kv_bits,
    source,
    steps,
    calls,
    kernel_time_ns,
    mean_ns,
    flops,
    bytes,
    flops_seed,
    bytes_seed,
    flops_min,
    flops_max,
    bytes_min,
    bytes_max,
    flops / CAST(nullif(bytes, 0) AS DOUBLE) AS flops_per_byte,
    flops / (1000.0::DOUBLE * nullif(kernel_time_ns, 0)) AS tflops_s,
    bytes / (1000.0::DOUBLE * nullif(kernel_time_ns, 0)) AS tb_s,
    arch,
    roofline_ns,
    100.0::DOUBLE * roofline_ns / nullif(kernel_time_ns, 0) AS roofline_pct,
    bound,
    why,
    note
FROM grouped;
