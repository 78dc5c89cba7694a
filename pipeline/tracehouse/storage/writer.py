"""Writing one part: Parquet files under temporary names, made visible by its manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from tracehouse import __version__
from tracehouse.storage import durable, layout
from tracehouse.storage.manifest import FileEntry, Part, TableFile, commit_part, timestamp

GROUP_ROWS = 1 << 17
_DICTIONARY_BYTES = 8 << 20  # of a column's distinct words in a row group
_FEW_ROWS = 1_000  # for fewer zstd takes longer to begin than for its work; Snappy does not
_STATISTICS = ("trace_id", "event_id", "ts_ns")  # what queries narrow by
_HASH_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A part whose files are complete and on disk, but under temporary names.

    `moves` are the (temporary, final) names. It can be sent to another process: only the one that
    holds the lock commits, so that a worker which outlives it changes nothing. `in_store`: the
    files are in a bucket, and the names relative to it.
    """

    part: Part
    moves: tuple[tuple[Path, Path], ...]
    in_store: bool = False


def commit_staged(out: Path, staged: StagedPart) -> Part:
    """Make a part visible: names to their place, and last the manifest.

    Call it under the lock. Raises OSError; what was moved then is refuse that `upkeep.clean`
    removes.
    """
    for temporary, final in staged.moves:
        temporary.replace(final)
    for folder in sorted({final.parent for _, final in staged.moves}):
        durable.sync(folder)
    commit_part(out, staged.part)
    return staged.part


class PartWriter:
    """Collects the rows of a part and stages them all at once, or not at all.

    A table's schema is that of the first rows appended to it; a table without rows gets no file.
    Memory is bounded by GROUP_ROWS rows a table. As a context manager it aborts unless staged.

    Staging and committing are done in an order that a crash cannot hurt: data to disk, names to
    their place, and last the manifest. Until that is there, all of it is refuse that
    `upkeep.clean` removes.
    """

    def __init__(
        self, out: Path, part_id: str, after_group: Callable[[], None] | None = None
    ) -> None:
        """`after_group` is called when a row group has been written."""
        self._out = out
        self._id = part_id
        self._after_group = after_group
        self._tables: dict[str, _TableWriter] = {}

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()

    def append(self, table_name: str, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows to a table. Raises OSError if they cannot be written."""
        if rows.num_rows == 0:
            return
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        writer = self._tables.get(table_name)
        if writer is None:
            final = self._out / layout.table_path(table_name, self._id)
            durable.make_folder(final.parent)
            temporary = layout.temporary(final, self._id)
            with durable.naming(final):
                writer = _TableWriter(temporary, final, table.schema, self._after_group)
            self._tables[table_name] = writer
        writer.append(table)

    def settle(self) -> None:
        """Finish the files so far: their tables take no more rows. Raises OSError."""
        for name, writer in self._tables.items():
            writer.finish(layout.table_path(name, self._id))

    def stage(
        self, files: Sequence[FileEntry], held: Sequence[str], settings: str = ""
    ) -> StagedPart:
        """Finish the files, still under their temporary names; `commit_staged` makes them visible.

        `files` are what was read, `held` the traces with rows in the part, `settings` what the
        rows depend on beside the files. The writer cannot be used again. Raises OSError, and then
        nothing is left.
        """
        try:
            tables = {
                name: writer.finish(layout.table_path(name, self._id))
                for name, writer in sorted(self._tables.items())
            }
        except BaseException:
            self.abort()
            raise
        moves = tuple((writer.temporary, writer.final) for writer in self._tables.values())
        self._tables = {}
        part = Part(self._id, timestamp(), __version__, tuple(files), tables, tuple(held), settings)
        return StagedPart(part, moves)

    def abort(self) -> None:
        """Drop all that was appended; does nothing after a commit."""
        for writer in self._tables.values():
            writer.drop()
        self._tables = {}


class _TableWriter:
    """The Parquet file of one table under construction."""

    def __init__(
        self,
        temporary: Path,
        final: Path,
        schema: pa.Schema,
        after_group: Callable[[], None] | None,
    ) -> None:
        self.final = final
        self.temporary = temporary
        self._after_group = after_group
        self._rows = 0
        self._finished: TableFile | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None  # until rows are written

    def append(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self._flush()

    def finish(self, path: str) -> TableFile:
        """Write what is left, bring it to disk and describe it as the file at `path`, once."""
        if self._finished is None:
            self._flush()
            assert self._writer is not None
            with durable.naming(self.final):
                self._writer.close()
                durable.sync(self.temporary)
            size = self.temporary.stat().st_size
            self._finished = TableFile(path, self._rows, size, checksum(self.temporary))
        return self._finished

    def drop(self) -> None:
        """Leave nothing; what cannot be written any more, as on a full disk, need not be."""
        try:
            if self._writer is not None:
                _close(self._writer)
        finally:
            self.temporary.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Write the waiting rows in row groups of GROUP_ROWS and more.

        One dictionary a row group: at a second one Parquet's writer would give up encoding by it.
        """
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries()
        groups = max(table.num_rows // GROUP_ROWS, 1)
        size = -(-table.num_rows // groups)
        with durable.naming(self.final):
            if self._writer is None:
                self._writer = self._opened(is_small=table.num_rows < _FEW_ROWS)
            for start in range(0, table.num_rows, size):
                self._writer.write_table(table.slice(start, size), row_group_size=size)
                if self._after_group is not None:
                    self._after_group()
        self._rows += table.num_rows
        self._waiting, self._waiting_rows = [], 0

    def _opened(self, *, is_small: bool) -> pq.ParquetWriter:
        columns = {field.name: field.type for field in self._schema}
        return pq.ParquetWriter(
            self.temporary,
            self._schema,
            compression="snappy" if is_small else "zstd",
            compression_level=None if is_small else 1,
            write_page_checksum=True,  # 0.1 % longer; DuckDB reads past them, pyarrow can verify
            use_dictionary=[n for n, type_ in columns.items() if pa.types.is_dictionary(type_)],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_statistics=[name for name in _STATISTICS if name in columns],
            column_encoding={
                name: "DELTA_BINARY_PACKED"
                for name, type_ in columns.items()
                if pa.types.is_integer(type_)
            },
        )


def _close(writer: pq.ParquetWriter) -> None:
    try:
        writer.close()
    except OSError:
        writer.is_open = False  # else it would try again when it is collected
        with suppress(OSError):
            writer.close()  # its file


def checksum(path: Path) -> str:
    """Return the XXH3-64 of a file's content, in 16 hex digits. Raises OSError."""
    digest = xxhash.xxh3_64()
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
