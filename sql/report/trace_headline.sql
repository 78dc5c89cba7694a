-- What stands at the top of the report of a trace.
--
-- grain:   one row per (trace_id)
-- reads:   checks, coverage, roofline, roofline_categories, trace_timeline, traces
-- columns:
--   trace_id            VARCHAR  -     the trace
--   path                VARCHAR  -     file that holds it
--   label               VARCHAR  -     job that it belongs to
--   status              VARCHAR  -     ok, repaired, partial or rejected
--   reason              VARCHAR  -     why the status is not ok
--   devices             VARCHAR  -     names of its devices, each once
--   arch                VARCHAR  -     device whose peaks are used; NULL if not known
--   peak_tb_s           DOUBLE   TB/s  bandwidth of its memory
--   framework           VARCHAR  -     what the trace says of its producer
--   torch_version       VARCHAR  -     torch version, where the trace says it
--   rank                BIGINT   -     rank; NULL if unknown
--   world_size          BIGINT   -     ranks of the job
--   recorded_at         VARCHAR  -     start of its first event in UTC; NULL if unknown
--   span_ns             BIGINT   ns    first start to last end of all events
--   events              BIGINT   -     events read
--   kernels             BIGINT   -     GPU kernels
--   ops                 BIGINT   -     op calls
--   total_ns            BIGINT   ns    first start to last end on the GPU
--   busy_ns             BIGINT   ns    time with any GPU activity on any device
--   busy_pct            DOUBLE   pct   busy_ns of total_ns
--   computation_ns      BIGINT   ns    time with compute or memset activity
--   computation_pct     DOUBLE   pct   of total_ns
--   exposed_comm_ns     BIGINT   ns    time with communication and no computation
--   exposed_comm_pct    DOUBLE   pct   of total_ns
--   exposed_memcpy_ns   BIGINT   ns    time with a copy and nothing else
--   exposed_memcpy_pct  DOUBLE   pct   of total_ns
--   op_time_ns          BIGINT   ns    GPU time of recorded op calls
--   no_op_ns            BIGINT   ns    GPU time without a recorded op
--   modelled_ns         BIGINT   ns    GPU time of calls whose FLOPs and bytes are known
--   modelled_pct        DOUBLE   pct   modelled_ns of op_time_ns
--   limited_ns          BIGINT   ns    GPU time of calls that have a roofline
--   roofline_ns         DOUBLE   ns    least time of these calls on the device
--   roofline_pct        DOUBLE   pct   roofline_ns of limited_ns: 100 is at the limit
--   failing             BIGINT   -     checks that it fails
--   pipeline_version    VARCHAR  -     version of Tracehouse that analysed it
SELECT
    traces.trace_id,
    traces.path,
    traces.label,
    traces.status,
    traces.reason,
    array_to_string(list_sort(list_distinct(traces.devices)), ', ') AS devices,
    peaks.arch,
    peaks.peak_tb_s,
    traces.framework,
    traces.torch_version,
    traces.rank,
    traces.world_size,
    strftime(
        make_timestamp((traces.base_time_ns + traces.start_ns) // 1000), '%Y-%m-%d %H:%M:%S'
    ) AS recorded_at,
    traces.end_ns - traces.start_ns AS span_ns,
    traces.events,
    traces.kernels,
    traces.ops,
    timeline.total_ns,
    timeline.busy_ns,
    timeline.busy_pct,
    timeline.computation_ns,
    timeline.computation_pct,
    timeline.exposed_comm_ns,
    timeline.exposed_comm_pct,
    timeline.exposed_memcpy_ns,
    timeline.exposed_memcpy_pct,
    coverage.op_time_ns,
    coverage.no_op_ns,
    coverage.modelled_ns,
    coverage.modelled_pct,
    limits.limited_ns,
    limits.roofline_ns,
    100.0::DOUBLE * limits.roofline_ns / nullif(limits.limited_ns, 0) AS roofline_pct,
    coalesce(failed.failing, 0) AS failing,
    traces.pipeline_version
FROM traces
LEFT JOIN trace_timeline AS timeline
    ON timeline.trace_id = traces.trace_id
    AND traces.gpu_events > 0
LEFT JOIN coverage ON coverage.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        min(arch) AS arch,
        min(peak_tb_s) AS peak_tb_s
    FROM roofline
    GROUP BY trace_id
) AS peaks ON peaks.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        CAST(sum(limited_ns) AS BIGINT) AS limited_ns,
        sum(roofline_ns) AS roofline_ns
    FROM roofline_categories
    GROUP BY trace_id
) AS limits ON limits.trace_id = traces.trace_id
LEFT JOIN (
    SELECT
        trace_id,
        count(*) AS failing
    FROM checks
    WHERE NOT ok
    GROUP BY trace_id
) AS failed ON failed.trace_id = traces.trace_id
WHERE traces.trace_id = $trace_id;
