"""Writing to a bucket: by way of a local folder, which is brought up part by part.

What a crash leaves is as in a folder: the Parquet files of a part go first, then its manifest,
which is the commit, then the warehouse; and only when that is there are the manifests removed that
it replaces. Parquet files that no manifest names are removed by the next run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from tracehouse.errors import TracehouseError
from tracehouse.storage import layout, runs
from tracehouse.storage.bucket import Bucket, Changed, StoreError
from tracehouse.storage.layout import WAREHOUSE
from tracehouse.storage.lease import Lease
from tracehouse.storage.manifest import Part, TableFile, commit_part, load_state
from tracehouse.storage.replica import Replica
from tracehouse.storage.writer import StagedPart, checksum, commit_staged

_Signature = tuple[int, int, int]  # inode, mtime in ns, bytes: a file that was replaced has another


class WorkingCopy(Replica):
    """The folder of the run that holds `lease`.

    `kept`: tables whose Parquet files stay in the folder once they are in the bucket, because the
    warehouse is built from them; the others may be larger than the disk here. It has all manifests
    and the warehouse.
    """

    def __init__(
        self, bucket: Bucket, lease: Lease, *, kept: Collection[str], is_fresh: bool = False
    ) -> None:
        """Bring what every run needs into the folder, and remove from the bucket what is left over.

        UsageError if the bucket cannot be read; StoreError; OSError.
        """
        self._lease = lease
        self._kept = kept
        self._here: dict[str, _Signature] = {}  # what is in the bucket just so
        super().__init__(bucket, is_fresh=is_fresh)
        try:
            self.fetch_state()
            self.fetch_runs(newest=True)
            self.fetch(name for name in (WAREHOUSE,) if name in self.listing)
            self._clean()
        except BaseException:
            self.close()
            raise

    @property
    def died(self) -> bool:
        """Whether the last run was killed."""
        return self._lease.died is not None

    @property
    def token(self) -> str:
        """What tells this run from others in the bucket's lock."""
        return self._lease.token

    def _fetched(self, name: str) -> None:
        self._here[name] = _signature(self.folder / name)

    def _clean(self) -> None:
        """Remove Parquet files that no manifest names, and what was under construction."""
        try:
            state = load_state(self.folder)
        except TracehouseError:  # damaged: what it names is not known
            return
        named = {file.path for part in state.parts for file in part.tables.values()}
        self._delete(
            name
            for name in self.listing
            if layout.is_written(name) and name not in named and name not in self.manifests
        )

    def commit(self, staged: StagedPart) -> Part:
        """Make a part visible in the bucket. TracehouseError LOCK_LOST; StoreError; OSError."""
        if not staged.in_store:
            part = commit_staged(self.folder, staged)
        else:
            part = staged.part
            self.bucket.together(self._move, staged.moves)
            self.bucket.delete(temporary.as_posix() for temporary, _ in staged.moves)
            self.look()
            commit_part(self.folder, part)
        self._push()
        return part

    def _move(self, names: tuple[Path, Path]) -> None:
        temporary, final = names
        self.bucket.copy(temporary.as_posix(), final.as_posix())

    def record(self) -> None:
        """Bring up the records of runs, whatever else may be new. Raises as `commit`."""
        new = [name for name in self._new() if name.startswith(f"{runs.PATH}/")]
        if new:
            self._lease.renew()
            for name in new:
                self._put(name)

    def _push(self) -> None:
        """Bring up what is new in the lake: Parquet files, then manifests."""
        new = [name for name in self._new() if not name.startswith(f"{runs.PATH}/")]
        if not new:
            return
        self._lease.renew()
        manifests = [name for name in new if name.startswith(f"{layout.LAKE}/{layout.MANIFESTS}/")]
        self.bucket.together(self._put, set(new) - set(manifests))
        if manifests:
            self._lease.renew()
        for name in sorted(manifests, key=_number):
            self._put(name)
        for name in new:
            self._drop(name)

    def _new(self) -> list[str]:
        return [name for name, found in self._files() if self._here.get(name) != found]

    def publish(self) -> None:
        """Bring up the lake, then the warehouse; last, remove what it does without.

        Raises as `commit`.
        """
        self._push()
        warehouse = self.folder / WAREHOUSE
        if warehouse.exists() and self._here.get(WAREHOUSE) != _signature(warehouse):
            self._lease.renew()
            self._put(WAREHOUSE)
        gone = [name for name in self._here if not (self.folder / name).exists()]
        if gone:
            self._lease.renew()
            # The newest that forgets or replaces goes last: till then it outranks the others.
            for name in sorted(filter(self.manifests.__contains__, gone), key=_number):
                self._delete([name])
            self._delete(name for name in gone if name not in self.manifests)
        self._keep()

    def _files(self) -> Iterable[tuple[str, _Signature]]:
        """Yield what belongs into the lake of the bucket, but for what is under construction."""
        lake = self.folder / layout.LAKE
        for path in sorted(lake.rglob("*")):
            if path.suffix in (".parquet", ".json") and path.is_file():
                yield path.relative_to(self.folder).as_posix(), _signature(path)

    def _put(self, name: str) -> None:
        source = self.folder / name
        signature = _signature(source)
        is_new = name not in self._here and name.endswith((".parquet", ".json"))
        try:
            self.bucket.put(name, source, is_new=is_new)
        except Changed as error:
            # Ours, where an answer was lost and the request sent again.
            if not self._is_same(name, source):
                raise StoreError(
                    f"{self.bucket.url}/{name} is there already: another run has written it"
                ) from error
        self._here[name] = signature

    def _is_same(self, name: str, source: Path) -> bool:
        self.look()
        if name not in self.listing or self.listing[name].bytes != source.stat().st_size:
            return False
        there = source.with_name(f"{source.name}.tmp")
        try:
            self.bucket.fetch(name, self.listing[name], there)
            return checksum(there) == checksum(source)
        finally:
            there.unlink(missing_ok=True)

    def _drop(self, name: str) -> None:
        """Remove the Parquet file of a large table that is in the bucket now."""
        steps = name.split("/")
        if name.endswith(".parquet") and (len(steps) > 3 or steps[1] not in self._kept):
            del self._here[name]
            (self.folder / name).unlink()

    def _delete(self, names: Iterable[str]) -> None:
        removed = list(names)
        if removed:
            self.bucket.delete(removed)
        for name in removed:
            self._here.pop(name, None)
            self.listing.pop(name, None)

    def need(self, files: Iterable[TableFile], *, is_checked: bool = True) -> None:
        """Bring Parquet files into the folder; those that were written here are there."""
        wanted = [file for file in files if not (self.folder / file.path).exists()]
        if any(file.path not in self.listing for file in wanted):
            self.look()
        super().need(wanted, is_checked=is_checked)

    def _keep(self) -> None:
        """Keep what the next run needs, so that it need not fetch it."""
        self.look()
        for name, signature in self._here.items():
            with suppress(OSError):
                if _signature(self.folder / name) == signature and name in self.listing:
                    self._cache.keep(name, self.listing[name], self.folder / name)
        self.forget_others()


def _number(manifest: str) -> int:
    return layout.part_number(Path(manifest).stem)


def put_staged(bucket: Bucket, folder: Path, staged: StagedPart) -> StagedPart:
    """Bring what was staged in `folder` into the bucket, under names that nobody reads.

    For a worker on another machine: `WorkingCopy.commit` gives them their names. StoreError.
    """
    moves = tuple(
        (temporary.relative_to(folder), final.relative_to(folder))
        for temporary, final in staged.moves
    )
    names = [temporary.as_posix() for temporary, _ in moves]
    bucket.together(lambda name: bucket.put(name, folder / name, is_new=True), names)
    return StagedPart(staged.part, moves, in_store=True)


def _signature(path: Path) -> _Signature:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
