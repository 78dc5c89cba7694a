"""The objects of a warehouse in a bucket: listed, fetched, and put under conditions."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

from tracehouse.errors import TracehouseError, UsageError

T = TypeVar("T")

_AT_ONCE = 16  # requests
_CHUNK = 1 << 20
# What is sent is held in memory: of a file of twice the size or more, a few parts.
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_TRIES = 3  # at an object whose transfer breaks off; the requests themselves are retried below us
CREDENTIALS_HINT = "check the bucket, the network and the credentials in the environment"


class StoreError(OSError):
    """The store failed in the middle of the work. What was committed stays."""


class Changed(StoreError):
    """A condition did not hold: the object is another than was said, or there is one already."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the store lists it: its ETag, which changes with its content, and its bytes."""

    etag: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Note:
    """A small object: content, ETag, and its age in seconds by the clock of the store alone."""

    content: bytes
    etag: str
    age: float


class Bucket:
    """What lies under one URL; names are relative to it.

    Credentials and endpoint come from the environment, as s3fs and botocore find them.

    Raises everywhere, but where said: StoreError for whatever the store refuses. Changed is one.
    """

    def __init__(self, url: str) -> None:
        """Make ready to reach `url`; nothing is asked yet. UsageError if s3fs is not installed."""
        try:
            import s3fs
        except ImportError as error:
            raise UsageError(
                f"{url} needs the package s3fs", hint="pip install 'tracehouse[s3]'"
            ) from error
        self.url = url
        self._bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._fs = s3fs.S3FileSystem(use_listings_cache=False)

    def check_conditions(self) -> None:
        """Raise UsageError if the libraries here would drop the conditions of `put_note`."""
        with self._errors("reach"):
            self._fs.connect()
        known = self._fs.s3.meta.service_model.operation_model("PutObject").input_shape.members
        if not {"IfMatch", "IfNoneMatch"} <= set(known):
            raise UsageError(
                "this botocore knows no conditional writes, without which two runs could write to "
                f"{self.url} at once",
                hint="pip install -U 'tracehouse[s3]' 'botocore>=1.35.69'",
            )

    @property
    def endpoint(self) -> str:
        """The server that is asked."""
        with self._errors("reach"):
            self._fs.connect()
            return str(self._fs.s3.meta.endpoint_url)

    def listing(self) -> dict[str, Stored]:
        """Return every object by its name. UsageError if it cannot be listed."""
        found: dict[str, Stored] = {}
        page: dict[str, Any] = {}
        try:
            while not page or page.get("IsTruncated"):
                more = {"ContinuationToken": page["NextContinuationToken"]} if page else {}
                with self._errors("list"):
                    page = self._fs.call_s3(
                        "list_objects_v2", Bucket=self._bucket, Prefix=self._prefix, **more
                    )
                for entry in page.get("Contents", ()):
                    name = entry["Key"].removeprefix(self._prefix)
                    found[name] = Stored(entry["ETag"], int(entry["Size"]))
        except OSError as error:
            raise UsageError(str(error), hint=CREDENTIALS_HINT) from error
        return found

    def has(self, name: str) -> bool:
        """Whether there is an object of that name that may be read. UsageError if none can tell."""
        try:
            with self._errors("reach"):
                try:
                    self._fs.call_s3("head_object", Bucket=self._bucket, Key=self._prefix + name)
                except (FileNotFoundError, PermissionError):  # 403 where the bucket is not listed
                    return False
        except OSError as error:
            raise UsageError(str(error), hint=CREDENTIALS_HINT) from error
        return True

    def fetch(self, name: str, stored: Stored, target: Path) -> None:
        """Write an object into a new file, whole. Changed if it is not the one listed any more."""
        from fsspec.asyn import sync

        for left in reversed(range(_TRIES)):
            try:
                with self._errors(f"read {name} of"):
                    sync(self._fs.loop, self._fetch, name, stored, target)
                return
            except StoreError as error:
                is_final = isinstance(error, Changed) or isinstance(
                    error.__cause__, PermissionError | FileNotFoundError
                )
                if not left or is_final:
                    raise

    async def _fetch(self, name: str, stored: Stored, target: Path) -> None:
        answer = await self._fs._call_s3(
            "get_object", Bucket=self._bucket, Key=self._prefix + name, IfMatch=stored.etag
        )
        length = 0
        async with answer["Body"] as body:
            with target.open("wb") as file:
                while chunk := await body.read(_CHUNK):
                    file.write(chunk)
                    length += len(chunk)
        if length != stored.bytes:
            raise OSError(errno.EIO, f"{length:,} of {stored.bytes:,} bytes came")

    def read_note(self, name: str) -> Note | None:
        """Return a small object; None if there is none."""
        from fsspec.asyn import sync

        with self._errors(f"read {name} of"):
            try:
                answer, content = sync(self._fs.loop, self._read, name)
            except FileNotFoundError as error:
                if _code(error) == "NoSuchBucket":
                    raise
                return None
        now = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        moment = parsedate_to_datetime(now) if now else datetime.now(UTC)
        age = (moment - answer["LastModified"]).total_seconds()
        return Note(content, answer["ETag"], age)

    async def _read(self, name: str) -> tuple[dict[str, Any], bytes]:
        answer = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=self._prefix + name)
        async with answer["Body"] as body:
            return answer, await body.read()

    def put_note(self, name: str, content: bytes, *, instead_of: str | None) -> str:
        """Put a small object in the place of the one with that ETag, or of none; return its ETag.

        Changed if another one, or one at all, is there.
        """
        condition = {"IfNoneMatch": "*"} if instead_of is None else {"IfMatch": instead_of}
        with self._errors(f"write {name} of"):
            answer = self._fs.call_s3(
                "put_object",
                Bucket=self._bucket,
                Key=self._prefix + name,
                Body=content,
                **condition,
            )
        return str(answer["ETag"])

    def put(self, name: str, source: Path, *, is_new: bool) -> None:
        """Put a file, whole. Changed if `is_new` and another object has that name."""
        with self._errors(f"write {name} of"):
            self._fs.put_file(
                str(source),
                self._path(name),
                mode="create" if is_new else "overwrite",
                chunksize=_PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store."""
        with self._errors(f"write {target} of"):
            self._fs.copy(self._path(source), self._path(target))

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are not there are no matter."""
        keys = [self._prefix + name for name in names]
        for first in range(0, len(keys), 1000):
            some = [{"Key": key} for key in keys[first : first + 1000]]
            with self._errors("delete from"):
                answer = self._fs.call_s3(
                    "delete_objects", Bucket=self._bucket, Delete={"Objects": some, "Quiet": True}
                )
                for failed in answer.get("Errors", ()):
                    raise PermissionError(f"{failed.get('Key')}: {failed.get('Message')}")

    def together(self, work: Callable[[T], None], items: Iterable[T]) -> None:
        """Do the same with each item, many at once; at the first error those left are dropped."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            try:
                for done in [threads.submit(work, item) for item in items]:
                    done.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _path(self, name: str) -> str:
        return f"{self._bucket}/{self._prefix}{name}"

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Turn the errors of s3fs, botocore and aiohttp, which have no base, into ours."""
        try:
            yield
        except TracehouseError:
            raise
        except Exception as error:
            if isinstance(error, FileExistsError) or _code(error) in ("PreconditionFailed", "412"):
                raise Changed(f"cannot {doing} {self.url}: it has changed meanwhile") from error
            if isinstance(error, OSError) and error.filename is not None:
                raise  # of a file here: a full disk
            raise StoreError(f"cannot {doing} {self.url}: {_words(error)}") from error


def _code(error: BaseException) -> str:
    """Return the store's own code of an error, such as NoSuchBucket; nothing if it has none."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _words(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
