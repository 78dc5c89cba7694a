"""A folder that stands for a bucket: it holds what was asked for of the objects there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tracehouse.errors import TracehouseError
from tracehouse.storage import runs
from tracehouse.storage.address import note_copy
from tracehouse.storage.bucket import Bucket, Stored
from tracehouse.storage.cache import Cache
from tracehouse.storage.manifest import TableFile
from tracehouse.storage.verify import check_files, file_fault

# Names come from the store, and become paths.
_NAME = re.compile(r"warehouse\.duckdb|lake(/[A-Za-z0-9_-][A-Za-z0-9_.-]*){2,3}", re.ASCII)
_MANIFEST = re.compile(r"lake/manifests/part-\d{6,}\.json", re.ASCII)


class Replica:
    """A working folder, removed when it is closed. `listing`: the objects, as they were listed.

    `is_fresh`: take nothing from the cache, so that the bytes are those that the store has now.
    """

    def __init__(self, bucket: Bucket, *, is_fresh: bool = False) -> None:
        """List the bucket. UsageError if that is refused; OSError."""
        self.bucket = bucket
        self.listing: dict[str, Stored] = {}
        self._is_fresh = is_fresh
        self._cache = Cache(bucket.endpoint, bucket.url)
        self.folder, self._descriptor = self._cache.open_folder()
        try:
            note_copy(self.folder, bucket.url)
            self.look()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, TracehouseError):
            self.tell(error)
        self.close()

    def close(self) -> None:
        """Remove the folder; twice does no harm."""
        if self._descriptor >= 0:
            self._cache.close_folder(self.folder, self._descriptor)
            self._descriptor = -1

    def tell(self, error: TracehouseError) -> None:
        """Word an error by the URL instead of the folder."""
        error.args = tuple(self.told(str(arg)) for arg in error.args)
        error.hint = self.told(error.hint)

    def told(self, text: str) -> str:
        """Word a text by the URL instead of the folder."""
        return text.replace(str(self.folder), self.bucket.url)

    def look(self) -> None:
        """List the bucket anew."""
        found = self.bucket.listing()
        self.listing = {name: stored for name, stored in found.items() if _NAME.fullmatch(name)}

    @property
    def manifests(self) -> list[str]:
        """The names of the manifests in the bucket."""
        return [name for name in self.listing if _MANIFEST.fullmatch(name)]

    def fetch(self, names: Iterable[str]) -> None:
        """Bring objects into the folder, under their names; those that are there stay as they are.

        Changed if one is not as it was listed; StoreError; OSError.
        """
        wanted = [name for name in names if not (self.folder / name).exists()]
        for parent in {(self.folder / name).parent for name in wanted}:
            parent.mkdir(parents=True, exist_ok=True)
        self.bucket.together(self._fetch, wanted)

    def _fetch(self, name: str) -> None:
        stored, target = self.listing[name], self.folder / name
        if self._is_fresh or not self._cache.link(name, stored, target):
            temporary = target.with_name(f"{target.name}.tmp")
            self.bucket.fetch(name, stored, temporary)
            temporary.replace(target)
            self._cache.keep(name, stored, target)
        self._fetched(name)

    def _fetched(self, name: str) -> None:
        """Take note of an object that is in the folder now."""

    def need(self, files: Iterable[TableFile], *, is_checked: bool = True) -> None:
        """Bring Parquet files into the folder; those that the bucket lacks stay absent.

        One of the cache that is damaged is fetched anew. TracehouseError LAKE_DAMAGED, if it
        `is_checked`, for one that is damaged in the bucket. Else as `fetch`.
        """
        here = {file.path: file for file in files if file.path in self.listing}
        self.fetch(here)
        if is_checked:
            self.bucket.together(self._check, here.values())

    def _check(self, file: TableFile) -> None:
        if file_fault(self.folder, file) is None:
            return
        self._cache.forget(file.path, self.listing[file.path])
        (self.folder / file.path).unlink()
        self._fetch(file.path)
        check_files(self.folder, [file])

    def forget_others(self) -> None:
        """Drop from the cache what the bucket held no more when it was listed."""
        self._cache.keep_only(self.listing)

    def fetch_state(self) -> None:
        """Bring the manifests into the folder."""
        self.fetch(self.manifests)

    def fetch_runs(self, *, newest: bool = False) -> None:
        """Bring the records of runs into the folder, all or the newest alone."""
        names = sorted(n for n in self.listing if n.startswith(f"{runs.PATH}/run-"))
        names.sort(key=len)  # run-1000000 comes behind run-999999
        self.fetch(names[-1:] if newest else names)
