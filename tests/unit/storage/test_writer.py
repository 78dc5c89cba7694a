from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from tracehouse import __version__
from tracehouse.schema.tables import EVENTS, ISSUES, OPS, TABLES
from tracehouse.storage import layout, writer
from tracehouse.storage.manifest import load_state
from tracehouse.storage.writer import PartWriter, commit_staged

PART = "part-000001"


def events(trace: str, count: int, first: int = 0) -> pa.Table:
    columns = {
        "trace_id": [trace] * count,
        "event_id": range(first, first + count),
        "name": [f"{trace}-{i % 3}" for i in range(count)],
        "ts_ns": [2**62 + i if i % 5 else None for i in range(count)],
        "args": ["{}"] * count,
    }
    arrays = []
    for field in EVENTS.schema:
        values = list(columns.get(field.name, [None] * count))
        if pa.types.is_dictionary(field.type):
            arrays.append(pa.array(values, pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=EVENTS.schema)


def files_below(out: Path) -> list[str]:
    return sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file())


def test_a_part_is_committed(tmp_path):
    out = tmp_path / "new" / "out"
    rows = events("t1", 10)
    with PartWriter(out, PART) as part_writer:
        part_writer.append("events", rows.slice(0, 4))
        part_writer.append("events", rows.slice(4).combine_chunks().to_batches()[0])
        part_writer.append("ops", OPS.schema.empty_table())
        part = commit_staged(out, part_writer.stage([], ["t1"]))
    assert files_below(out) == [
        "lake/events/part-000001.parquet",
        "lake/manifests/part-000001.json",
    ]
    path = out / part.tables["events"].path
    assert part.tables.keys() == {"events"}  # a table without rows has no file
    assert part.tables["events"].rows == 10
    assert part.tables["events"].bytes == path.stat().st_size
    assert part.tables["events"].checksum == xxhash.xxh3_64_hexdigest(path.read_bytes())
    assert (part.id, part.held, part.pipeline_version) == (PART, ("t1",), __version__)
    assert load_state(out).parts == (part,)
    stored = pq.read_table(path)
    assert stored.schema.equals(EVENTS.schema, check_metadata=True)
    assert stored.to_pylist() == rows.to_pylist()


def test_nothing_is_seen_before_the_commit(tmp_path):
    part_writer = PartWriter(tmp_path, PART)
    part_writer.append("events", events("t1", 10))
    assert load_state(tmp_path).parts == ()
    assert all(".tmp-part-000001-" in name for name in files_below(tmp_path))
    part_writer.abort()
    assert files_below(tmp_path) == []


def fail_after_append(out: Path, commit: bool) -> None:
    with PartWriter(out, PART) as part_writer:
        part_writer.append("events", events("t1", 10))
        if commit:
            commit_staged(out, part_writer.stage([], ["t1"]))
        raise OSError(28, "No space left on device")


def test_an_error_aborts(tmp_path):
    with pytest.raises(OSError, match="No space"):
        fail_after_append(tmp_path, commit=False)
    assert files_below(tmp_path) == []


def test_an_error_after_the_commit_leaves_it(tmp_path):
    with pytest.raises(OSError, match="No space"):
        fail_after_append(tmp_path, commit=True)
    assert len(load_state(tmp_path).parts) == 1
    assert len(files_below(tmp_path)) == 2


def test_a_commit_that_fails_shows_nothing(tmp_path, monkeypatch):
    def full(path: Path) -> None:
        if path.is_file():
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(writer.durable, "sync", full)
    with pytest.raises(OSError, match="Input/output"):
        fail_after_append(tmp_path, commit=True)
    assert files_below(tmp_path) == []


def test_many_small_appends_share_row_groups_and_dictionaries(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_ROWS", 100)
    tables = [events(f"t{i}", 30, first=30 * i) for i in range(11)]
    with PartWriter(tmp_path, PART) as part_writer:
        for table in tables:
            part_writer.append("events", table)
        part = commit_staged(tmp_path, part_writer.stage([], [f"t{i}" for i in range(11)]))
    path = tmp_path / part.tables["events"].path
    meta = pq.read_metadata(path)
    # 4 × 30 is the first sum ≥ 100: groups of 120, 120 and the 90 that are left.
    assert [meta.row_group(i).num_rows for i in range(3)] == [120, 120, 90]
    name = meta.row_group(0).column(EVENTS.names.index("name"))
    assert name.has_dictionary_page
    # Only the dictionary itself is plain: no page fell back from it.
    encodings = [e for e in name.encodings if e not in ("PLAIN", "RLE")]
    assert encodings == ["RLE_DICTIONARY"]
    assert pq.read_table(path).to_pylist() == pa.concat_tables(tables).to_pylist()


def test_a_large_append_is_cut_into_even_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_ROWS", 100)
    with PartWriter(tmp_path, PART) as part_writer:
        part_writer.append("events", events("t", 350))
        part = commit_staged(tmp_path, part_writer.stage([], ["t"]))
    meta = pq.read_metadata(tmp_path / part.tables["events"].path)
    # 350 rows make 3 groups of ≥ 100: 117 + 117 + 116.
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [117, 117, 116]


def test_statistics_where_queries_narrow(tmp_path):
    with PartWriter(tmp_path, PART) as part_writer:
        part_writer.append("events", events("t1", 10, first=40))
        part = commit_staged(tmp_path, part_writer.stage([], ["t1"]))
    group = pq.read_metadata(tmp_path / part.tables["events"].path).row_group(0)
    by_name = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert (by_name["event_id"].statistics.min, by_name["event_id"].statistics.max) == (40, 49)
    assert by_name["trace_id"].statistics.max == "t1"
    assert by_name["args"].statistics is None


@pytest.mark.parametrize(("count", "codec"), [(10, "SNAPPY"), (1_000, "ZSTD")])
def test_few_rows_are_compressed_by_what_begins_fast(tmp_path, count, codec):
    with PartWriter(tmp_path, PART) as part_writer:
        part_writer.append("events", events("t1", 5))
        part_writer.append("events", events("t2", count - 5))
        part = commit_staged(tmp_path, part_writer.stage([], ["t1", "t2"]))
    group = pq.read_metadata(tmp_path / part.tables["events"].path).row_group(0)
    assert (group.num_rows, group.column(0).compression) == (count, codec)


def test_every_table_of_the_schema_can_be_written(tmp_path):
    with PartWriter(tmp_path, PART) as part_writer:
        for table in TABLES.values():
            row = {c.name: [None if c.nullable else _sample(c.type)] for c in table.columns}
            arrays = [pa.array(row[f.name], _plain(f.type)).cast(f.type) for f in table.schema]
            part_writer.append(table.name, pa.Table.from_arrays(arrays, schema=table.schema))
        part = commit_staged(tmp_path, part_writer.stage([], []))
    assert part.tables.keys() == TABLES.keys()
    stored = pq.read_table(tmp_path / layout.table_path("issues", PART))
    assert stored.schema.equals(ISSUES.schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _sample(type_: pa.DataType) -> object:
    return "x" if pa.types.is_string(_plain(type_)) else 1
