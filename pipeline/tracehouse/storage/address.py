"""Where a warehouse is: in a folder, or in a bucket under a URL such as s3://bucket/prefix.

An OUT is a Path everywhere. That of a bucket has lost one of the two slashes (`s3:/bucket/prefix`),
and is told from a folder by that.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tracehouse.errors import UsageError

_URL = re.compile(
    r"(?P<protocol>s3(?=:$)|[a-z][a-z0-9+.-]+(?=:/)):/*(?P<rest>.*)", re.ASCII | re.DOTALL
)
_FORBIDDEN = re.compile(r"[?*\[\]#%\\\x00-\x1f\x7f]")
_COPY_OF = ".copy-of"


def url_of(out: str | os.PathLike[str]) -> str | None:
    """Return the URL that `out` means, with no slash at its end; None if it means a folder.

    UsageError for a protocol that cannot hold a warehouse, or a name that DuckDB takes no view of.
    """
    found = _URL.fullmatch(os.fspath(out))
    if found is None:
        return None
    protocol, rest = found["protocol"], found["rest"].rstrip("/")
    if protocol != "s3":
        raise UsageError(
            f"OUT cannot be at {protocol}://{rest}", hint="give a folder, or s3://BUCKET/PREFIX"
        )
    if not rest or _FORBIDDEN.search(rest) or {"", ".", ".."} & set(rest.split("/")):
        raise UsageError(
            f"OUT cannot be at s3://{rest}",
            hint="give s3://BUCKET/PREFIX, without empty steps, `..` and any of ? * [ ] # % \\",
        )
    return f"s3://{rest}"


def shown(path: str | os.PathLike[str]) -> str:
    """Return the path of an OUT, or of a file in it, as its user writes it."""
    text = os.fspath(path)
    found = _URL.fullmatch(text)
    return text if found is None else f"{found['protocol']}://{found['rest']}"


def is_url(place: str) -> bool:
    """Whether a place, as `place_of` tells it, is a bucket's."""
    return place.startswith("s3://")


def note_copy(folder: Path, url: str) -> None:
    """Note that the lake in `folder` is a working copy of the one at `url`. Raises OSError."""
    (folder / _COPY_OF).write_text(url, encoding="utf-8")


def place_of(out: Path) -> str:
    """Return where the lake in `out` is for others: its absolute path; of a copy, the URL."""
    try:
        return (out / _COPY_OF).read_text(encoding="utf-8")
    except OSError:
        return os.path.abspath(out)  # noqa: PTH100 - resolve() would follow links
