"""The Inductor cache of this machine, indexed when a trace first needs it and once a run."""

from __future__ import annotations

import functools
import getpass
import os
import tempfile
from pathlib import Path

from tracehouse.triton.inductor_cache import InductorCache, cache_folders, first_folder, index

NO_CACHE = "there is no Inductor cache: pass --inductor-cache-dir"


def kernel_cache(explicit: Path | None) -> InductorCache | None:
    """Return the cache: of the folder that was named, else of the first that exists.

    Source: the seed, "V1: cache-based".
    """
    try:
        home, user = Path.home(), getpass.getuser()
    except (OSError, KeyError, RuntimeError):  # no such user on this machine
        home, user = Path(os.sep), ""
    folder = first_folder(
        cache_folders(explicit, os.environ, home, Path(tempfile.gettempdir()), user)
    )
    return None if folder is None else _indexed(folder)


def forget() -> None:
    """Let the next run index the cache anew."""
    _indexed.cache_clear()


@functools.lru_cache(2)
def _indexed(folder: Path) -> InductorCache:
    return index(folder)
