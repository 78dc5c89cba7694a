"""Files that appear whole or not at all, compressed as their names say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard
from isal import igzip

from tracehouse.storage import durable

_GZIP_LEVEL = 2


@contextmanager
def opened(target: Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open what is written to; a path appears once all of it is on disk, or not at all."""
    if not isinstance(target, Path):
        yield target
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as raw, ExitStack() as stack:
            yield _compressed(raw, target.suffix.lower(), stack)
        durable.sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _compressed(raw: BinaryIO, suffix: str, stack: ExitStack) -> BinaryIO:
    """Return a stream into `raw`, compressed as a file's suffix says."""
    if suffix == ".gz":
        packed = igzip.IGzipFile(  # type: ignore[no-untyped-call]
            filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=raw, mtime=0
        )
        return cast(BinaryIO, stack.enter_context(packed))
    if suffix == ".zst":
        return stack.enter_context(zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
    return raw
