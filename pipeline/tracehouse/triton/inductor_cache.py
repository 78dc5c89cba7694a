"""The Inductor cache of a machine: every compiled kernel of a folder, by hash and by name.

A kernel's own file is named by its hash and holds its text; a wrapper file holds the text of all
kernels of a graph, with the comment that names their original ops. The two are tied by the text.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tracehouse.triton.cache_origin import Block, Node, Origin, blocks, hash_of_file, is_wrapper
from tracehouse.triton.cache_source import REDUCED, Missing, Source, parse_source
from tracehouse.triton.pointers import Pointer

ENVIRONMENT = "TORCHINDUCTOR_CACHE_DIR"
MAX_FILE_BYTES = 32 << 20
_SIGNS_OF_A_KERNEL = (b"@triton.jit", b"async_compile.triton")


class Skipped(StrEnum):
    """Why a file of the folder was passed over."""

    UNREADABLE = "cannot be read"
    OVERSIZE = f"has more than {MAX_FILE_BYTES >> 20} MiB"
    LINK = "links out of the folder"


class NotFound(StrEnum):
    """Why no kernel of the cache belongs to an event."""

    ABSENT = "the kernel is not in the Inductor cache"
    AMBIGUOUS = "several kernels of this name are in the Inductor cache"


@dataclass(frozen=True, slots=True)
class CachedKernel:
    """A compiled kernel, as the cache has it.

    name: the one that tells its ops, where there is one. kernel_hash: of its file, None if not
    known. ops: original ATen ops, None if no wrapper tells. nodes: its part of the graph. file:
    where it stands, relative to the folder. source: sizes, pointers and the rest.
    """

    name: str
    kernel_hash: str | None
    source: Source
    origin: Origin
    file: str

    @property
    def kind(self) -> str:
        """A word of names.KINDS."""
        return self.source.kind

    @property
    def ops(self) -> tuple[str, ...] | None:
        """The original ATen ops, each once; None if no wrapper tells."""
        return self.origin.ops

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The calls of its part of the graph, () if no wrapper tells."""
        return self.origin.nodes

    @property
    def pointers(self) -> tuple[Pointer, ...] | None:
        """Its pointers in the order of the signature, None if there is no readable signature."""
        return self.source.pointers

    @property
    def is_exact(self) -> bool:
        """Whether its sizes are known and none is a hint, rounded up to a power of two."""
        return bool(self.source.sizes) and self.source.sizes.keys() <= self.source.exact

    @property
    def xnumel(self) -> int | None:
        """Elements of the dimensions that are kept, None if not known."""
        kept = [size for d, size in self.source.sizes.items() if d not in REDUCED]
        return _product(kept) if kept else None

    @property
    def rnumel(self) -> int | None:
        """Elements of the dimensions that are reduced, 1 if there are none, None if not known."""
        reduced = [size for d, size in self.source.sizes.items() if d in REDUCED]
        if not reduced and self.kind in ("red", "per", "spl"):
            return None
        return _product(reduced)

    @property
    def why(self) -> tuple[Missing, ...]:
        """What could not be read, and why."""
        return self.source.why


class Lookup(NamedTuple):
    """A kernel, or why there is none."""

    kernel: CachedKernel | None
    why: NotFound | None


@dataclass(frozen=True, slots=True)
class InductorCache:
    """The kernels of a cache folder.

    files: how many were read. skipped: how many were not, by reason.
    """

    folder: Path
    kernels: tuple[CachedKernel, ...]
    files: int
    skipped: Mapping[Skipped, int]
    by_hash: Mapping[str, CachedKernel] = field(repr=False)
    by_name: Mapping[str, tuple[CachedKernel, ...]] = field(repr=False)

    def lookup(
        self, kernel_hash: str | None = None, kernel_file: str | None = None, name: str = ""
    ) -> Lookup:
        """Find the kernel of an event.

        By hash where the event has one, and by name where that leaves no doubt: names are used
        again by other graphs, so all kernels of the name must be the same in all that counts, and
        none that is known to have another hash will do.

        Args:
            kernel_hash: of the event, if any.
            kernel_file: path on the machine that was traced; its last part is the hash.
            name: of the kernel.
        """
        wanted = kernel_hash or (hash_of_file(kernel_file) if kernel_file else None)
        if wanted is not None and (kernel := self.by_hash.get(wanted)) is not None:
            return Lookup(kernel, None)
        found = self.by_name.get(name, ())
        if wanted is not None:
            found = tuple(kernel for kernel in found if kernel.kernel_hash is None)
        if not found:
            return Lookup(None, NotFound.ABSENT)
        first = found[0]
        if any(_facts(kernel) != _facts(first) for kernel in found[1:]):
            return Lookup(None, NotFound.AMBIGUOUS)
        return Lookup(first, None)


def cache_folders(
    explicit: str | Path | None,
    environ: Mapping[str, str],
    home: Path,
    tempdir: Path,
    user: str,
) -> tuple[Path, ...]:
    """Name the folders that may be the cache, in the order in which they count.

    Args:
        explicit: the one that was asked for, if any.
        environ: environment variables.
        home: the user's folder.
        tempdir: where temporary files go.
        user: the user's login; what no file name may hold becomes `_`, as Inductor does.
    """
    folders = [Path(place) for place in (explicit, environ.get(ENVIRONMENT)) if place]
    safe_user = re.sub(r'[\\/:*?"<>|]', "_", user)
    return (*folders, home / ".cache" / "torchinductor", tempdir / f"torchinductor_{safe_user}")


def first_folder(folders: Iterable[Path]) -> Path | None:
    """Return the first of `folders` that exists."""
    return next((folder for folder in folders if _is_folder(folder)), None)


def index(folder: Path) -> InductorCache:
    """Read every kernel of a cache folder, each file once.

    A file that cannot be read is counted and passed over. Links are followed to files inside the
    folder only.

    Cost: each file is searched a fixed number of times; texts that occur twice are read once.
    """
    reader = _Reader(folder.resolve())
    for path in _python_files(reader.folder, reader.skipped):
        reader.add(path)
    return reader.finish()


@dataclass(slots=True)
class _Text:
    """A kernel's text and all places that have it."""

    source: Source
    file: str
    hashes: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    folder: Path
    files: int = 0
    skipped: Counter[Skipped] = field(default_factory=Counter)
    texts: dict[bytes, _Text | None] = field(default_factory=dict)  # by digest, None: no kernel

    def add(self, path: Path) -> None:
        raw = _read(path, self.skipped)
        if raw is None:
            return
        self.files += 1
        if not any(sign in raw for sign in _SIGNS_OF_A_KERNEL):
            return
        text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
        file = _shown(path.relative_to(self.folder))
        if is_wrapper(text):
            for block in blocks(text):
                known = self._text(block.text, file)
                if known is not None:
                    known.blocks.append(block._replace(text=""))
            return
        known = self._text(text, file)
        if known is not None:
            known.hashes.append(path.stem)
            known.file = file

    def _text(self, text: str, file: str) -> _Text | None:
        digest = hashlib.blake2b(text.strip().encode(), digest_size=16).digest()
        if digest not in self.texts:
            source = parse_source(text)
            self.texts[digest] = None if source is None else _Text(source, file)
        return self.texts[digest]

    def finish(self) -> InductorCache:
        kernels = []
        by_hash: dict[str, CachedKernel] = {}
        by_name: dict[str, list[CachedKernel]] = {}
        claimed: list[tuple[str, CachedKernel]] = []
        for text in self.texts.values():
            if text is None:
                continue
            kernel = _kernel(text)
            kernels.append(kernel)
            by_hash.update((kernel_hash, kernel) for kernel_hash in text.hashes)
            claims = {block.origin.kernel_hash for block in text.blocks}
            claimed += [(kernel_hash, kernel) for kernel_hash in claims if kernel_hash is not None]
            variables = {block.variable for block in text.blocks}
            for name in {kernel.name, text.source.function, text.source.kernel_name, *variables}:
                if name:
                    by_name.setdefault(name, []).append(kernel)
        for kernel_hash, kernel in claimed:  # a file of that hash knows better
            by_hash.setdefault(kernel_hash, kernel)
        return InductorCache(
            self.folder,
            tuple(kernels),
            self.files,
            dict(self.skipped),
            by_hash,
            {name: tuple(found) for name, found in by_name.items()},
        )


def _kernel(text: _Text) -> CachedKernel:
    origins = [block.origin for block in text.blocks]
    claims = [origin.kernel_hash for origin in origins if origin.kernel_hash is not None]
    variable = text.blocks[0].variable if text.blocks else ""
    return CachedKernel(
        name=text.source.kernel_name or variable or text.source.function,
        kernel_hash=next(iter([*text.hashes, *claims]), None),
        source=text.source,
        origin=_agreed(origins),
        file=text.file,
    )


def _agreed(origins: list[Origin]) -> Origin:
    """Keep what all wrappers say alike: graphs share a kernel, each calls its buffers its own."""
    if not origins:
        return Origin()
    first = origins[0]
    told = {origin.ops for origin in origins if origin.ops is not None}
    fragments = {_fragment(origin) for origin in origins}
    ops = next(iter(told)) if len({frozenset(ops) for ops in told}) == 1 else None
    if len(fragments) == 1:
        return Origin(first.kernel_hash, ops, first.nodes, first.reads, first.writes)
    return Origin(first.kernel_hash, ops)


def _fragment(origin: Origin) -> tuple[object, ...]:
    sizes = (tuple((b.bytes, b.elements) for b in part) for part in (origin.reads, origin.writes))
    return (origin.nodes, *sizes)


def _facts(kernel: CachedKernel) -> tuple[object, ...]:
    """Return all of a kernel that its work depends on."""
    source = kernel.source
    return (
        source.kind,
        tuple(source.sizes.items()),
        source.exact,
        source.pointers,
        frozenset(kernel.ops) if kernel.ops is not None else None,
        _fragment(kernel.origin),
    )


def _product(sizes: list[int | None]) -> int | None:
    product = 1
    for size in sizes:
        if size is None:
            return None
        product *= size
    return product


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _python_files(folder: Path, skipped: Counter[Skipped]) -> Iterator[Path]:
    """Yield the .py files below a folder that are files or link to one inside."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            skipped[Skipped.UNREADABLE] += 1
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.name.endswith(".py"):
                    if entry.is_symlink() and not path.resolve().is_relative_to(folder):
                        skipped[Skipped.LINK] += 1
                    elif entry.is_file():  # no pipe, which would keep a reader waiting
                        yield path
            except OSError:
                skipped[Skipped.UNREADABLE] += 1


def _read(path: Path, skipped: Counter[Skipped]) -> bytes | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        skipped[Skipped.UNREADABLE] += 1
        return None
    if len(raw) > MAX_FILE_BYTES:
        skipped[Skipped.OVERSIZE] += 1
        return None
    return raw


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", errors="backslashreplace").decode()
