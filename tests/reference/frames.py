"""Frames for tests, from events written by hand."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa

from tracehouse.schema import tables
from tracehouse.vocab import canonical_category

ARGS = {
    "correlation": "correlation",
    "external_id": "External id",
    "device": "device",
    "stream": "stream",
    "sequence_number": "Sequence number",
    "bytes": "bytes",
    "graph_id": "graph id",
    "graph_node_id": "graph node id",
}
TEXTS = dict(
    zip(
        tables.FRAME_TEXTS,
        (
            *("Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Collective name"),
            *tables.LAUNCHER_TEXTS,
        ),
        strict=True,
    )
)


def to_ns(us):
    return None if us is None else int((Decimal(us) * 1000).to_integral_value(ROUND_HALF_UP))


def to_integer(value):
    return None if value is None else int(value)  # some traces quote numbers


def row(event_id, event):
    args = event.get("args", {})
    text = {
        key: None if key not in event else str(event[key]) for key in ("cat", "name", "pid", "tid")
    }
    return {
        "event_id": event_id,
        "ph": event.get("ph", "X"),
        **text,
        "ts_ns": to_ns(event["ts"]),
        "dur_ns": to_ns(event.get("dur")),
        **{column: to_integer(args.get(key)) for column, key in ARGS.items()},
        **{
            column: json.dumps(args[key], separators=(",", ":")) if key in args else None
            for column, key in TEXTS.items()
        },
    }


def frame(events):
    """Make a frame of trace events; times in µs, all else as in a trace."""
    rows = [
        row(i, event)
        for i, event in enumerate(events)
        if event.get("ph", "X") in "BE" or canonical_category(event.get("cat")) is not None
    ]
    return pa.Table.from_pylist(rows, schema=tables.FRAME_SCHEMA)


def op(name, ts, dur, tid=5, pid=5, **args):
    return {
        "cat": "cpu_op",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def call(name, ts, dur, correlation, tid=5, pid=5, cat="cuda_runtime", **args):
    args["correlation"] = correlation
    return {"cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, correlation, stream=7, pid=0, cat="kernel", **args):
    args |= {"correlation": correlation, "stream": stream}
    return {"cat": cat, "name": name, "pid": pid, "tid": stream, "ts": ts, "dur": dur, "args": args}


def note(name, ts, dur, tid=5, pid=5, cat="user_annotation"):
    return {"cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {}}
