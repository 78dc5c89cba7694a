"""The tables that Python code fills, each column defined once.

Parquet schemas, DuckDB comments, `tracehouse schema` and the docs derive from here. Tables that SQL
computes are defined by the header of their SQL file instead (see `tracehouse.warehouse.views`).

Times are int64 nanoseconds. Absent values are NULL. `trace_id` is 16 hex digits of XXH3 over the
decompressed text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pyarrow as pa

TEXT = pa.string()
WORD = pa.dictionary(pa.int32(), pa.string())  # few distinct values
INT = pa.int64()
SMALL = pa.int32()
FLAG = pa.bool_()
REAL = pa.float64()


@dataclass(frozen=True, slots=True)
class Column:
    """One stored column: its name, Arrow type, unit (`-` for none) and meaning."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = True


@dataclass(frozen=True, eq=False, slots=True)  # each is one of its kind: hashed by identity
class Table:
    """One stored table: what a row is, its key and its columns."""

    name: str
    summary: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with unit and meaning as field metadata."""
        return _schema(self)

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return [c.name for c in self.columns]


@cache
def _schema(table: Table) -> pa.Schema:
    return pa.schema(
        pa.field(c.name, c.type, c.nullable, {"unit": c.unit, "meaning": c.meaning})
        for c in table.columns
    )


def _key(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, "-", meaning, nullable=False)


_TRACE = _key("trace_id", WORD, "trace the row belongs to")
_EVENT = _key("event_id", INT, "position of the event in the file's event list, from 0")
_TS = Column(
    "ts_ns",
    INT,
    "ns",
    "start on the trace's own clock; add traces.base_time_ns for time since 1970",
)

EVENTS = Table(
    "events",
    "Every event of every trace, as it stood in the file.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column(
            "ph", WORD, "-", "phase: X complete, i instant, s and f flow, M metadata, C counter"
        ),
        Column("cat", WORD, "-", "category as spelled in the file"),
        Column("name", WORD, "-", "name"),
        Column("pid", WORD, "-", "process id or word, as text; for GPU activity the device"),
        Column("tid", WORD, "-", "thread id or word, as text; for GPU activity the stream"),
        _TS,
        Column("dur_ns", INT, "ns", "duration; NULL where none is known"),
        Column("flow_id", INT, "-", "id of a flow event"),
        Column("bp", WORD, "-", "binding point of a flow event"),
        Column("scope", WORD, "-", "scope of an instant event (its key s)"),
        Column(
            "correlation", INT, "-", "args.correlation: ties a runtime call to its GPU activity"
        ),
        Column(
            "external_id",
            INT,
            "-",
            "args.External id: ties host rows (and newer GPU rows) to an op",
        ),
        Column("device", INT, "-", "args.device"),
        Column("stream", INT, "-", "args.stream, or args.sycl queue"),
        Column(
            "sequence_number",
            INT,
            "-",
            "args.Sequence number: ties a backward op to its forward op",
        ),
        Column("fwd_thread_id", INT, "-", "args.Fwd thread id"),
        Column("python_id", INT, "-", "args.Python id"),
        Column("python_parent_id", INT, "-", "args.Python parent id"),
        Column(
            "bytes",
            INT,
            "bytes",
            "args.bytes of a copy or fill, or args.Bytes of an allocation (negative: a free)",
        ),
        Column("graph_id", INT, "-", "args.graph id"),
        Column("graph_node_id", INT, "-", "args.graph node id"),
        Column("args", TEXT, "-", "args whole, as compact JSON text"),
        Column(
            "extra",
            TEXT,
            "-",
            "keys without a column, and values their column cannot hold, as JSON text",
        ),
    ),
)

OPS = Table(
    "ops",
    "CPU op calls (category cpu_op), nested per thread, with the GPU work below each; and those of "
    "a graph's capture, once for each launch of the graph.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column(
            "parent_id",
            INT,
            "-",
            "event_id of the op call that encloses this one on its thread; NULL at a root",
        ),
        Column("depth", SMALL, "-", "number of op calls around this one; 0 at a root"),
        Column("name", WORD, "-", "name, e.g. aten::mm"),
        Column(
            "category",
            WORD,
            "-",
            "kind of op by data/op_categories.csv or --categories; `other` where no rule fits",
        ),
        Column("process", WORD, "-", "process id, as text"),
        Column("thread", WORD, "-", "thread id, as text"),
        Column(
            "signature_id",
            INT,
            "-",
            "shapes, types, strides and values of the inputs; NULL if none recorded",
        ),
        Column("step_id", INT, "-", "innermost step that this call starts in, as in `steps`"),
        _TS,
        Column("dur_ns", INT, "ns", "host time of the call, children included"),
        Column(
            "self_ns",
            INT,
            "ns",
            "host time less that of the op calls directly below; never negative",
        ),
        Column("external_id", INT, "-", "External id of the call"),
        Column("sequence_number", INT, "-", "autograd sequence number"),
        Column("kernel_count", INT, "-", "GPU activities launched by this call or any below it"),
        Column("kernel_time_ns", INT, "ns", "union of their intervals"),
        Column(
            "direct_kernel_count",
            INT,
            "-",
            "GPU activities whose nearest enclosing op is this call",
        ),
        Column("direct_kernel_time_ns", INT, "ns", "union of their intervals"),
        Column(
            "origin",
            WORD,
            "-",
            "trace; or capture: the call was recorded when the graph was captured whose launch "
            "replays it, so that it has no host time of its own (ts_ns, dur_ns and self_ns NULL), "
            "and the shapes are those of the captured batch, launches.capture_size; its event_id "
            "is 2^40 or more, no event of the file",
        ),
    ),
)

SIGNATURES = Table(
    "signatures",
    "Distinct inputs of op calls: one row per combination of dims, types, strides and values.",
    ("trace_id", "signature_id"),
    (
        _TRACE,
        _key(
            "signature_id",
            INT,
            "hash of the four texts; equal inputs have equal ids in every trace",
        ),
        Column(
            "input_dims",
            pa.list_(pa.list_(INT)),
            "-",
            "shape per input; [] for a scalar or none, NULL for a list of tensors",
        ),
        Column(
            "member_dims",
            pa.list_(pa.list_(pa.list_(INT))),
            "-",
            "per input that is a list of tensors the shape of each member; NULL if not recorded",
        ),
        Column("input_types", pa.list_(TEXT), "-", "type per input as spelled in the trace"),
        Column(
            "input_strides",
            pa.list_(pa.list_(INT)),
            "-",
            "strides per input, in elements; NULL if not recorded, and for a list of tensors",
        ),
        Column(
            "concrete_inputs", pa.list_(TEXT), "-", "value per input as text; empty for a tensor"
        ),
        Column(
            "extra_inputs",
            pa.list_(TEXT),
            "-",
            "values beyond the declared inputs, such as a compiler's constants; NULL if none",
        ),
        Column("raw", TEXT, "-", "the four args as they stood, as one JSON object"),
    ),
)

LAUNCHES = Table(
    "launches",
    "Runtime and driver calls that started GPU work.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column("name", WORD, "-", "call, e.g. cudaLaunchKernel"),
        Column("process", WORD, "-", "process id, as text"),
        Column("thread", WORD, "-", "thread id, as text"),
        _TS,
        Column("dur_ns", INT, "ns", "host time of the call"),
        Column("correlation", INT, "-", "correlation id"),
        Column("op_id", INT, "-", "event_id of the nearest enclosing op call; NULL if none"),
        Column("step_id", INT, "-", "innermost step that the call starts in, as in `steps`"),
        Column("kernel_count", INT, "-", "GPU activities it started"),
        Column("kernel_time_ns", INT, "ns", "union of their intervals"),
        Column("is_graph", FLAG, "-", "whether it launched a graph"),
        Column(
            "delay_ns",
            INT,
            "ns",
            "start of the call to start of its first GPU activity; may be negative; NULL where "
            "one is unknown, or GPU and host do not share a clock",
        ),
        Column("direct_kernel_count", INT, "-", "GPU activities it started that belong to no op"),
        Column("direct_kernel_time_ns", INT, "ns", "union of their intervals"),
        Column(
            "capture",
            WORD,
            "-",
            "file whose capture tells the ops of its graph; NULL where none does",
        ),
        Column(
            "capture_size",
            INT,
            "-",
            "batch that the graph was captured for, to which this one is padded: tokens, or "
            "requests where the capture counts those; NULL if not known",
        ),
        Column(
            "why_no_capture",
            WORD,
            "-",
            "why no capture tells the ops of its graph; NULL where one does, and for a trace "
            "without captures",
        ),
    ),
)

ANNOTATIONS = Table(
    "annotations",
    "User annotations (record_function ranges, profiler steps) and their mirrors on the GPU.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column("side", WORD, "-", "cpu or gpu"),
        Column("name", WORD, "-", "name"),
        Column("process", WORD, "-", "process id, as text; NULL on the GPU"),
        Column("thread", WORD, "-", "thread id, as text; NULL on the GPU"),
        Column("device", INT, "-", "device; NULL on the CPU"),
        Column("stream", INT, "-", "stream; NULL on the CPU"),
        _TS,
        Column("dur_ns", INT, "ns", "duration"),
        Column(
            "parent_id",
            INT,
            "-",
            "event_id of the annotation around it on the same thread or stream",
        ),
        Column(
            "role",
            WORD,
            "-",
            "step; sub-step, work of a draft model within one; dummy, a run without requests; "
            "capture, of a graph; or other",
        ),
        Column(
            "why",
            WORD,
            "-",
            "the rule of data/step_grammars.csv that gave the role; or nested, in another step; "
            "duplicate, of one that another thread or stream has; holds_steps; in_dummy; "
            "in_capture; NULL where no rule fits",
        ),
        Column(
            "step_id",
            INT,
            "-",
            "the step that it is or belongs to, as in `steps`; for the GPU side that of its CPU "
            "side; NULL if none",
        ),
        Column("rule", WORD, "-", "the rule that its name fits, whatever its role; NULL if none"),
        Column(
            "fields",
            WORD,
            "-",
            "what the numbers in its name are, a word each: r requests, c_ context, g_ generation, "
            "t_ both, sq query and sk key tokens; `-` where the rule does not say",
        ),
        Column(
            "numbers",
            pa.list_(INT),
            "-",
            "the numbers in its name, in order; NULL in it where one has more than 18 digits",
        ),
        Column("kernel_count", INT, "-", "GPU activities of the step; NULL but for the role step"),
        Column("kernel_time_ns", INT, "ns", "union of their intervals; NULL but for the role step"),
    ),
)

STEADY_STATE = Table(
    "steady_state",
    "Where serving is steady: runs of steps in which nearly as many requests run as in the fullest "
    "ones, what is before and after them, and what the benchmark's parameters say, if given.",
    ("trace_id", "region_id"),
    (
        _TRACE,
        _key("region_id", INT, "0, 1, 2 … within the trace"),
        Column(
            "kind",
            WORD,
            "-",
            "mixed, decode or prefill: a steady run by what is in it; of a mixed one also the "
            "longest run of decode steps and of steps with prefill; ramp_up, ramp_down; "
            "completion: steps in which a group of requests ends",
        ),
        Column(
            "rule",
            WORD,
            "-",
            "found, in the numbers of requests; or analytic, from --conc, --osl and --r",
        ),
        Column("first_step", INT, "-", "first step, as in `steps`"),
        Column("last_step", INT, "-", "last step: it belongs to the region"),
        Column("steps", INT, "-", "steps of its process from the first to the last"),
        Column("concurrency", INT, "-", "requests that run: the level that its steps are near"),
        Column(
            "fallback",
            FLAG,
            "-",
            "whether no steady run was found: it is the middle third, or all behind the ramp-up",
        ),
        Column("process", WORD, "-", "process whose steps they are; NULL if only the GPU has them"),
    ),
)

STEP_GRAMMARS = Table(
    "step_grammars",
    "The rules that tell which annotations are steps. They are not stored: views read them.",
    ("rule",),
    (
        Column("place", INT, "-", "order in which they are tried", nullable=False),
        Column("framework", WORD, "-", "framework that writes so; NULL where several do"),
        Column("rule", WORD, "-", "its name", nullable=False),
        Column("role", WORD, "-", "role of what fits"),
        Column("phase", WORD, "-", "phase of such steps; NULL where the counts say it"),
        Column("traits", WORD, "-", "words on how to read such steps"),
        Column("names", WORD, "-", "what keys of its pairs mean"),
        Column("pattern", WORD, "-", "the regular expression that a whole annotation fits"),
    ),
)

KERNELS = Table(
    "kernels",
    "GPU activities: kernels, copies and fills, each tied to the call and the op that launched it.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column(
            "rank_label",
            WORD,
            "-",
            "rank in a file of merged ranks: the prefix of its process ids; else NULL",
        ),
        Column("device", INT, "-", "GPU ordinal within the trace (and rank_label)"),
        Column("stream", INT, "-", "stream on the device"),
        Column("category", WORD, "-", "kernel, gpu_memcpy or gpu_memset"),
        Column("kind", WORD, "-", "compute, comm, memcpy or memset"),
        Column(
            "collective",
            WORD,
            "-",
            "collective of a kernel of kind comm, e.g. allreduce; NULL if unknown",
        ),
        Column("name", WORD, "-", "name as it stands in the trace"),
        Column(
            "short_name",
            WORD,
            "-",
            "name without return type, namespaces, template and call arguments",
        ),
        _TS,
        Column("dur_ns", INT, "ns", "duration that counts; NULL where it cannot be known"),
        Column(
            "raw_dur_ns", INT, "ns", "duration in the file, where dur_ns differs from it; else NULL"
        ),
        Column("correlation", INT, "-", "correlation id"),
        Column(
            "launch_id",
            INT,
            "-",
            "event_id of the call that launched it; NULL if none was recorded",
        ),
        Column(
            "op_id",
            INT,
            "-",
            "event_id of the nearest op call around the launch; for a kernel of a graph that of "
            "the captured call, NULL without a capture",
        ),
        Column("step_id", INT, "-", "innermost step that its launch starts in, as in `steps`"),
        Column("graph", FLAG, "-", "whether a graph launch started it"),
        Column("graph_id", INT, "-", "the graph, where recorded and not 0"),
        Column("graph_node_id", INT, "-", "node of the graph, where recorded and not 0"),
        Column("bytes", INT, "bytes", "bytes moved by a copy or fill, where recorded"),
        Column(
            "link",
            WORD,
            "-",
            "how it was tied: correlation, external_id or none; capture: to its launch by "
            "correlation, to its op by the trace of the graph's capture",
        ),
        Column(
            "why_unlinked",
            WORD,
            "-",
            "why link is none: pre_window (launched before the recording), no_correlation, "
            "ambiguous, or missing (its call was not recorded); else NULL",
        ),
        Column(
            "graft",
            WORD,
            "-",
            "how surely a kernel of a graph is the captured call it is tied to: exact, all names "
            "of the graph in order; by_name, the k-th of a name; by_stream, in order within each "
            "stream; aligned, in order, what was captured and did not run passed over; likely, "
            "the same where another call of that name may be meant; position, in order, names "
            "not recorded; NULL where no capture was used",
        ),
    ),
)

SPANS = Table(
    "spans",
    "Pairs of begin and end events (ph B and E) of one thread; ops and annotations among them are "
    "rows of those tables too.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _key("event_id", INT, "position of the begin event in the file's event list, from 0"),
        Column("end_id", INT, "-", "event_id of the end event; NULL if the span was never closed"),
        Column("name", WORD, "-", "name"),
        Column("cat", WORD, "-", "category as spelled in the file"),
        Column("process", WORD, "-", "process id, as text"),
        Column("thread", WORD, "-", "thread id, as text"),
        _TS,
        Column("dur_ns", INT, "ns", "begin to end; NULL if the span was never closed"),
    ),
)

TRACES = Table(
    "traces",
    "Traces: one row per distinct content read, and one per file that could not be.",
    ("trace_id",),
    (
        _TRACE,
        Column("status", WORD, "-", "ok, repaired, partial or rejected"),
        Column("reason", TEXT, "-", "why the status is not ok"),
        Column("events", INT, "-", "events read"),
        Column("kernels", INT, "-", "rows of `kernels` of category kernel"),
        Column("gpu_events", INT, "-", "rows of `kernels`: kernels, copies and fills"),
        Column("ops", INT, "-", "op calls, those that graphs replay by their captures included"),
        Column("bytes", INT, "bytes", "length of the decompressed text"),
        Column(
            "framework",
            TEXT,
            "-",
            "what the trace says of its producer: pytorch, vllm, sglang …; NULL if unknown",
        ),
        Column("torch_version", TEXT, "-", "torch version, where the trace says it"),
        Column("world_size", INT, "-", "ranks of the job, from distributedInfo"),
        Column("rank", INT, "-", "rank, from distributedInfo or the file name"),
        Column("devices", pa.list_(TEXT), "-", "names of the devices, from deviceProperties"),
        Column("arch", TEXT, "-", "name of the device that ran the work, where all agree"),
        Column(
            "base_time_ns",
            INT,
            "ns",
            "baseTimeNanoseconds: add it to ts_ns for time since 1970; NULL if absent",
        ),
        Column("start_ns", INT, "ns", "first start of a complete event whose times are known"),
        Column("end_ns", INT, "ns", "last end of such an event"),
        Column("analysed_at", pa.timestamp("us", "UTC"), "-", "when it was analysed"),
        Column("pipeline_version", TEXT, "-", "version of Tracehouse that analysed it"),
        Column("reader", WORD, "-", "scan or ijson"),
        Column("seconds", REAL, "s", "CPU seconds spent on reading and linking it"),
        Column("read_seconds", REAL, "s", "CPU seconds of reading it; NULL if it was rejected"),
        Column("link_seconds", REAL, "s", "CPU seconds of linking and nesting its events"),
        Column(
            "formulas_seconds",
            REAL,
            "s",
            "CPU seconds of its FLOPs and bytes; of what a part's traces have done together, here "
            "as in views_seconds and write_seconds, its share by events",
        ),
        Column("views_seconds", REAL, "s", "CPU seconds of the SQL views of sql/trace"),
        Column("write_seconds", REAL, "s", "CPU seconds of writing its rows, but that of `traces`"),
        Column(
            "envelope",
            TEXT,
            "-",
            "every key of the file beside the event list, as JSON text; secrets redacted",
        ),
    ),
)

ISSUES = Table(
    "issues",
    "What was odd in a trace: one row per code.",
    ("trace_id", "code"),
    (
        _TRACE,
        _key("code", WORD, "stable code; see docs/reference"),
        Column("severity", WORD, "-", "info, warning or error"),
        Column("count", INT, "-", "how often"),
        Column("first_event_id", INT, "-", "first event concerned; NULL if none"),
        Column("example", TEXT, "-", "one example, shortened"),
        Column("action", TEXT, "-", "what was done, and what is kept"),
    ),
)

OP_PERF = Table(
    "op_perf",
    "Op calls that have a formula or launched GPU work: what they did, how long it took, and how "
    "far that is from the device's limit. The rows marked `counted` hold every GPU activity of an "
    "op exactly once.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _key("event_id", INT, "the op call, as in `ops`"),
        Column("name", WORD, "-", "name of the op"),
        Column("category", WORD, "-", "its category, as in `ops`"),
        Column("family", WORD, "-", "its family by data/op_categories.csv: which formula it has"),
        Column("signature_id", INT, "-", "its inputs, as in `signatures`; NULL if none recorded"),
        Column(
            "forward_id",
            INT,
            "-",
            "event_id of the forward call whose inputs were used, for a backward call without any",
        ),
        Column("step_id", INT, "-", "innermost step that it starts in, as in `steps`"),
        Column("params", WORD, "-", "what the formula took from the inputs, as JSON; e.g. M, N, K"),
        Column("dtype", WORD, "-", "type of element that the peak is taken of"),
        Column(
            "flops", INT, "flops", "floating-point operations, a multiply-add is 2; NULL if unknown"
        ),
        Column(
            "bytes",
            INT,
            "bytes",
            "memory traffic that cannot be avoided: each distinct input read once, each output "
            "written once; NULL if unknown",
        ),
        Column("flops_per_byte", REAL, "flops/byte", "arithmetic intensity"),
        Column(
            "compute_spec", WORD, "-", "the peak that bounds it, e.g. matrix_bf16; NULL if none"
        ),
        Column(
            "counted",
            FLAG,
            "-",
            "whether this row carries its GPU time in every sum: it is the outermost call of known "
            "work, or launched the work itself and no call around it is of known work",
        ),
        Column(
            "carrier_id",
            INT,
            "-",
            "event_id of the row that carries the time of its activities; its own if counted",
        ),
        Column(
            "kernel_count",
            INT,
            "-",
            "GPU activities that it stands for: all below it if its work is known or it launched "
            "none itself, else those it launched itself",
        ),
        Column("kernel_time_ns", INT, "ns", "union of their intervals"),
        Column("tflops_s", REAL, "TFLOPS/s", "flops / kernel_time_ns, decimal"),
        Column("tb_s", REAL, "TB/s", "bytes / kernel_time_ns, decimal"),
        Column("arch", WORD, "-", "device whose peaks are used; NULL if it is not known"),
        Column("peak_tflops", REAL, "TFLOPS/s", "its peak of compute_spec; NULL if not known"),
        Column("peak_tb_s", REAL, "TB/s", "bandwidth of its memory, decimal"),
        Column(
            "roofline_ns",
            REAL,
            "ns",
            "least time on the device: the longer of flops at the peak and bytes at the memory's "
            "bandwidth; NULL if unknown",
        ),
        Column("roofline_pct", REAL, "pct", "roofline_ns / kernel_time_ns: 100 is at the limit"),
        Column("bound", WORD, "-", "compute or memory: which of the two is longer"),
        Column("why", WORD, "-", "why flops, bytes or the roofline are NULL"),
        Column("note", WORD, "-", "what explains a roofline_pct above 105"),
    ),
)

SIZES = pa.struct([pa.field(name, INT) for name in ("z", "y", "x", "r0", "r1")])

ATTENTION_ROOFLINE = Table(
    "attention_roofline",
    "Attention calls of serving steps: heads and widths, FLOPs and bytes by the sums over the "
    "step's requests, and how far that is from the device's limit. The rows of op_perf that carry "
    "the time of such an op and are in a step, and attention kernels in a step without an op.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _key(
            "event_id",
            INT,
            "the op call, as in `ops`; or the attention kernel, as in `kernels`, that no op is "
            "known of",
        ),
        Column("step_id", INT, "-", "the step it is in, as in `steps`"),
        Column("name", WORD, "-", "name of the op, or the short name of the kernel"),
        Column("phase", WORD, "-", "of the step: prefill, decode, mixed …"),
        Column("framework", WORD, "-", "that wrote the step's annotation; NULL if unknown"),
        *(
            Column(name, INT, "-", f"of the step, as in `steps`: {meaning}; NULL where not said")
            for name, meaning in (
                ("r_c", "context requests"),
                ("r_g", "generation requests"),
                ("c_sq", "Σ query tokens of context"),
                ("c_sk", "Σ key tokens of context"),
                ("c_sqsq", "Σ query² of context"),
                ("c_sqsk", "Σ query · key of context"),
                ("g_sq", "Σ query tokens of generation"),
                ("g_sk", "Σ key tokens of generation"),
                ("g_sqsq", "Σ query² of generation"),
                ("g_sqsk", "Σ query · key of generation"),
                ("tokens", "query tokens of all requests"),
                ("t_sk", "Σ key tokens of all requests"),
                ("t_sqsk", "Σ query · key of all requests"),
            )
        ),
        Column(
            "part",
            WORD,
            "-",
            "requests that the call is for: all, context or generation; NULL if that is not known",
        ),
        Column("h_q", INT, "-", "query heads on this rank; NULL if unknown"),
        Column("h_kv", INT, "-", "heads of keys and values on this rank; 1 for MLA's latent"),
        Column("d_qk", INT, "-", "width of a query and a key"),
        Column("d_v", INT, "-", "width of a value"),
        Column("window_keys", INT, "-", "keys that a token sees; NULL for all of its request"),
        Column("dtype", WORD, "-", "type of the queries"),
        Column("kv_bits", INT, "-", "bits of a number in the KV cache; of a new key if not said"),
        Column(
            "source", WORD, "-", "where heads and widths are from: inputs or model_config; or NULL"
        ),
        Column(
            "flops",
            INT,
            "flops",
            "h_q·(d_qk + d_v)·(2·c_sqsk - c_sqsq + 2·g_sqsk) of its part; NULL if unknown",
        ),
        Column(
            "bytes",
            INT,
            "bytes",
            "queries and outputs in the queries' type, keys and values of each request once in the "
            "cache's; NULL if unknown",
        ),
        Column("flops_seed", INT, "flops", "by the published formula: without a window"),
        Column(
            "bytes_seed",
            INT,
            "bytes",
            "by the published formula: all in the queries' type, no window, values read apart from "
            "keys though MLA's are one",
        ),
        Column("flops_min", INT, "flops", "the least they can be; flops itself where exact"),
        Column(
            "flops_max", INT, "flops", "the most they can be; NULL where nothing limits the keys"
        ),
        Column("bytes_min", INT, "bytes", "the least they can be; bytes itself where exact"),
        Column(
            "bytes_max", INT, "bytes", "the most they can be; NULL where nothing limits the keys"
        ),
        Column("flops_per_byte", REAL, "flops/byte", "arithmetic intensity"),
        Column("kernel_count", INT, "-", "GPU activities of the call"),
        Column("kernel_time_ns", INT, "ns", "union of their intervals"),
        Column("tflops_s", REAL, "TFLOPS/s", "flops / kernel_time_ns, decimal"),
        Column("tb_s", REAL, "TB/s", "bytes / kernel_time_ns, decimal"),
        Column("compute_spec", WORD, "-", "the peak that bounds it, e.g. matrix_bf16"),
        Column("arch", WORD, "-", "device whose peaks are used; NULL if it is not known"),
        Column("roofline_ns", REAL, "ns", "least time on the device; NULL if unknown"),
        Column("roofline_pct", REAL, "pct", "roofline_ns / kernel_time_ns: 100 is at the limit"),
        Column("bound", WORD, "-", "compute or memory: which of the two is longer"),
        Column("why", WORD, "-", "why flops, bytes or the roofline are NULL"),
        Column("note", WORD, "-", "what to know: a window, heads of a whole model, types assumed"),
    ),
)

TRITON_KERNELS = Table(
    "triton_kernels",
    "Calls of kernels that torch.compile generated, or that were written in Triton by hand: what "
    "they fused, how many elements they ran over, what they did and how long it took.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _key("event_id", INT, "the op call, as in `ops`"),
        Column("name", WORD, "-", "name of the kernel"),
        Column(
            "kind",
            WORD,
            "-",
            "poi pointwise, red reduction, per persistent reduction, tem template, for foreach, "
            "spl split scan, unk not told by the name, user not generated by torch.compile",
        ),
        Column("signature_id", INT, "-", "its inputs, as in `signatures`; NULL if none recorded"),
        Column("step_id", INT, "-", "the step that it starts in, as in `steps`; NULL for none"),
        Column(
            "aten_ops", pa.list_(TEXT), "-", "ops that it fused, each once; NULL if no name tells"
        ),
        Column(
            "ops_unknown",
            pa.list_(TEXT),
            "-",
            "parts of its name that are no known op; NULL if none",
        ),
        Column("xnumel", INT, "-", "product of the dimensions that are kept; NULL if unknown"),
        Column("rnumel", INT, "-", "product of the dimensions that are reduced; 1 if none is"),
        Column("dims", SIZES, "-", "the dimensions, slowest first; NULL where there is none"),
        Column("elements", INT, "-", "xnumel * rnumel"),
        Column(
            "sizes",
            WORD,
            "-",
            "where the dimensions come from: args; assumed, args whose number is a guess; cache; "
            "or hints, the cache's, rounded up to powers of two",
        ),
        Column(
            "flops",
            INT,
            "flops",
            "best known: Inductor's own count, or the FLOPs per element of the ops times elements; "
            "NULL if unknown",
        ),
        Column(
            "flops_is_partial",
            FLAG,
            "-",
            "whether flops is a lower bound, as the work of a part of the name is not known",
        ),
        Column("bytes", INT, "bytes", "best known memory traffic, see bytes_basis"),
        Column(
            "bytes_min", INT, "bytes", "the least it can be; below bytes where in_place is unknown"
        ),
        Column(
            "bytes_basis",
            WORD,
            "-",
            "num_gb, Inductor's own count; cache_roles, what the cached kernel does with each "
            "pointer; trace_capped, shapes up to xnumel * rnumel elements each; compat, the same "
            "and the published formula's further write, where it cannot be told from the trace "
            "whether the kernel writes in place; model, the formula of its op",
        ),
        Column(
            "in_place",
            WORD,
            "-",
            "whether a pointwise kernel reads and writes its first tensor: yes, no, written_only, "
            "or unknown",
        ),
        Column("flops_seed", INT, "flops", "by the published formula to the letter"),
        Column("bytes_seed", INT, "bytes", "by the published formula to the letter"),
        Column("kernel_count", INT, "-", "GPU activities that it launched"),
        Column("kernel_time_ns", INT, "ns", "union of their intervals; NULL if it launched none"),
        Column("flops_per_byte", REAL, "flops/byte", "arithmetic intensity"),
        Column("tflops_s", REAL, "TFLOPS/s", "flops / kernel_time_ns, decimal"),
        Column("tb_s", REAL, "TB/s", "bytes / kernel_time_ns, decimal"),
        Column("data_moved_mib", REAL, "MiB", "bytes / 2^20"),
        Column(
            "dtype", WORD, "-", "type of its first tensor; of its widest floats if that is none"
        ),
        Column("compute_spec", WORD, "-", "the peak that bounds it, e.g. vector_bf16"),
        Column("arch", WORD, "-", "device whose peaks are used; NULL if it is not known"),
        Column("roofline_ns", REAL, "ns", "least time on the device, as in `op_perf`"),
        Column("roofline_pct", REAL, "pct", "roofline_ns / kernel_time_ns: 100 is at the limit"),
        Column("bound", WORD, "-", "compute or memory: what bounds it"),
        Column(
            "source",
            WORD,
            "-",
            "what the numbers come from: v2, the args of the call; v1, the Inductor cache; "
            "kernel_num_gb, the args and Inductor's own count of bytes; model, the formula of "
            "its op",
        ),
        Column(
            "check",
            WORD,
            "-",
            "whether the grid bears the dimensions out: grid_ok, grid_mismatch, or none",
        ),
        Column("why", WORD, "-", "why flops, bytes or the roofline are NULL"),
        Column("kernel_hash", WORD, "-", "hash of the kernel's file in the Inductor cache"),
        Column("num_warps", INT, "-", "warps of a block"),
        Column("num_stages", INT, "-", "stages of its pipeline"),
    ),
)

COMPILED_CALLS = Table(
    "compiled_calls",
    "What the launcher says of a compiled kernel, as text. It is not stored: triton_kernels is "
    "made of it.",
    ("trace_id", "event_id"),
    (
        _TRACE,
        _EVENT,
        Column("kernel_name", WORD, "-", "args.kernel_name, there from 2.9 on"),
        Column("kernel_hash", WORD, "-", "args.kernel_hash"),
        Column("kernel_file", WORD, "-", "args.kernel_file"),
        Column("kernel_kwargs", WORD, "-", "args.kernel_kwargs: sizes of blocks"),
        Column("num_warps", WORD, "-", "args.num_warps"),
        Column("num_stages", WORD, "-", "args.num_stages"),
        Column("kernel_num_gb", WORD, "-", "args.kernel_num_gb: Inductor's count of bytes"),
        Column("kernel_flop", WORD, "-", "args.kernel_flop: Inductor's count of FLOPs"),
        Column("grid", WORD, "-", "args.grid of the call, up to 2.6"),
        Column("gpu_grid", WORD, "-", "args.grid of the first kernel that it launched"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        TRACES,
        ISSUES,
        EVENTS,
        OPS,
        SIGNATURES,
        LAUNCHES,
        ANNOTATIONS,
        KERNELS,
        SPANS,
        OP_PERF,
        ATTENTION_ROOFLINE,
        TRITON_KERNELS,
        STEADY_STATE,
    )
}

# What the linker needs of an event beside its stored columns, as compact JSON text: the inputs of
# an op, args.Collective name, and what Triton's launcher says of a kernel.
SIGNATURE_TEXTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")
LAUNCHER_TEXTS = (
    "kernel_name",
    "kernel_hash",
    "kernel_file",
    "kernel_kwargs",
    "num_warps",
    "num_stages",
    "kernel_num_gb",
    "kernel_flop",
    "grid",
)
FRAME_TEXTS = (*SIGNATURE_TEXTS, "collective_name", *LAUNCHER_TEXTS)

FRAME_COLUMNS = (
    "event_id",
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts_ns",
    "dur_ns",
    "correlation",
    "external_id",
    "device",
    "stream",
    "sequence_number",
    "bytes",
    "graph_id",
    "graph_node_id",
    *FRAME_TEXTS,
)
FRAME_SCHEMA = pa.schema(
    [EVENTS.schema.field(n) for n in FRAME_COLUMNS if n not in FRAME_TEXTS]
    + [pa.field(n, WORD) for n in FRAME_TEXTS]
)
"""The frame.

Complete events (ph X) of an analysed category and the begin and end events (ph B, E) of any, in
file order, with dictionary-encoded words.
"""
