"""Where a command writes: the folder OUT, or a working copy of what a bucket holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tracehouse.errors import UsageError
from tracehouse.storage import layout
from tracehouse.storage.address import shown, url_of
from tracehouse.storage.lock import lock
from tracehouse.storage.manifest import Part, TableFile
from tracehouse.storage.unreadable import unreadable
from tracehouse.storage.writer import StagedPart, commit_staged


class Place(Protocol):
    """A warehouse to which this run alone writes, in `folder`.

    `died`: whether the last run was killed. Of a bucket the folder has the manifests and the
    warehouse, and what was asked for.
    """

    @property
    def folder(self) -> Path: ...  # noqa: D102 (said above)

    @property
    def died(self) -> bool: ...  # noqa: D102 (said above)

    def need(self, files: Iterable[TableFile], *, is_checked: bool = True) -> None:
        """Bring Parquet files into the folder, as far as there are any.

        TracehouseError LAKE_DAMAGED, if it `is_checked`, for one that was fetched; OSError.
        """

    def fetch_runs(self) -> None:
        """Bring the records of all runs into the folder. Raises OSError."""

    def commit(self, staged: StagedPart) -> Part:
        """Make a part visible. TracehouseError LOCK_LOST; OSError."""

    def record(self) -> None:
        """Make the record of the run visible. Raises as `commit`."""

    def publish(self) -> None:
        """Make visible what was committed in the folder and the warehouse. Raises as `commit`.

        What the warehouse does without is removed.
        """


@dataclass(frozen=True, slots=True)
class Folder:
    """OUT itself: what stands in it is there for all."""

    folder: Path
    died: bool = False

    def need(self, files: Iterable[TableFile], *, is_checked: bool = True) -> None:
        """Nothing to bring."""

    def fetch_runs(self) -> None:
        """Nothing to bring."""

    def commit(self, staged: StagedPart) -> Part:
        """Give the files of a part their names, and last its manifest."""
        return commit_staged(self.folder, staged)

    def record(self) -> None:
        """Nothing: it is visible."""

    def publish(self) -> None:
        """Nothing: it is visible."""


@contextmanager
def writing(
    out: Path,
    *,
    wait: float = 0.0,
    kept: Collection[str] = (),
    is_new: bool = False,
    is_fresh: bool = False,
) -> Iterator[Place]:
    """Hold the warehouse in `out`, a folder or a bucket, against all other runs that write.

    `wait`: seconds to wait for another run to end. `kept`: tables that the warehouse is built from.
    `is_new`: it is made if it is not there. `is_fresh`: nothing is taken from the cache. UsageError
    if it is not there, if another run holds it, or if it cannot be written to.
    """
    url = url_of(out)
    if url is None:
        if not is_new:
            check_lake(out)
        with lock(out, wait=wait) as held:
            yield Folder(out, held.died is not None)
        return
    from tracehouse.storage.bucket import Bucket
    from tracehouse.storage.lease import lease
    from tracehouse.storage.working_copy import WorkingCopy

    if not is_new:
        check_lake(out)
    bucket = Bucket(url)
    with (
        lease(bucket, wait=wait) as held_lease,
        WorkingCopy(bucket, held_lease, kept=kept, is_fresh=is_fresh) as copy,
    ):
        yield copy


@contextmanager
def looking(out: Path) -> Iterator[Path]:
    """Return a folder with all that the bucket `out` holds, fetched anew.

    UsageError if it holds no lake; OSError.
    """
    from tracehouse.storage.bucket import Bucket
    from tracehouse.storage.replica import Replica

    check_lake(out)
    with Replica(Bucket(str(url_of(out))), is_fresh=True) as replica:
        replica.fetch(replica.listing)
        yield replica.folder


@contextmanager
def reading(out: Path) -> Iterator[tuple[Path, Callable[[Iterable[TableFile]], None]]]:
    """Return a folder with the manifests of `out`, and what brings Parquet files into it.

    UsageError if a bucket cannot be read; OSError.
    """
    url = url_of(out)
    if url is None:
        yield out, Folder(out).need
        return
    from tracehouse.storage.bucket import Bucket
    from tracehouse.storage.replica import Replica

    with Replica(Bucket(url)) as replica:
        replica.fetch_state()
        yield replica.folder, replica.need


def check_lake(out: Path) -> None:
    """Raise UsageError if there is nothing in `out`, TracehouseError if it cannot be read."""
    url = url_of(out)
    if url is None:
        try:
            found = (out / layout.LAKE).is_dir()
        except OSError as error:
            raise unreadable(out, error.strerror or str(error)) from error
    else:
        from tracehouse.storage.bucket import Bucket

        found = any(name.startswith(f"{layout.LAKE}/") for name in Bucket(url).listing())
    if not found:
        raise UsageError(
            f"{shown(out)} holds no lake.", hint=f"Try: tracehouse analyze TRACES -o {shown(out)}"
        )
