"""What is kept of a bucket on this machine, and the folders that work with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracehouse.storage.bucket import Stored
from tracehouse.storage.cache import Cache

STORED = Stored('"etag"', 5)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEHOUSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_object_is_found_by_name_etag_and_length(home, tmp_path):
    cache, source, target = Cache("host", "s3://b/w"), tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"12345")
    cache.keep("lake/a", STORED, source)
    source.unlink()
    assert cache.link("lake/a", STORED, target)
    assert target.read_bytes() == b"12345"
    for name, stored in (
        ("lake/b", STORED),
        ("lake/a", Stored('"other"', 5)),
        ("lake/a", Stored('"etag"', 6)),
    ):
        assert not cache.link(name, stored, tmp_path / "no")
    assert not Cache("other", "s3://b/w").link("lake/a", STORED, tmp_path / "no")
    cache.keep_only({"lake/a": STORED})
    assert cache.link("lake/a", STORED, target)
    cache.keep_only({})
    assert not cache.link("lake/a", STORED, tmp_path / "no")


def test_one_that_was_cut_off_is_not_taken(home, tmp_path):
    cache, source = Cache("host", "s3://b/w"), tmp_path / "source"
    source.write_bytes(b"123")
    cache.keep("lake/a", STORED, source)
    assert not cache.link("lake/a", STORED, tmp_path / "target")


def test_folders_of_processes_that_are_gone_are_removed(home):
    code = (
        "import os; from tracehouse.storage.cache import Cache;"
        "print(Cache('host', 's3://b/w').open_folder()[0], flush=True); os._exit(9)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    dead = Path(said.strip())
    assert dead.is_dir()
    cache = Cache("host", "s3://b/w")
    mine, descriptor = cache.open_folder()
    other, another = cache.open_folder()
    assert not dead.exists()
    assert mine.is_dir()
    cache.close_folder(mine, descriptor)
    cache.close_folder(other, another)
    assert list(mine.parent.iterdir()) == []


def test_nobody_else_may_look(home):
    Cache("host", "s3://b/w")
    assert [path.stat().st_mode & 0o777 for path in home.glob("*/*")] == [0o700, 0o700]


def test_where_nothing_can_be_kept_a_folder_for_temporary_files_does(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACEHOUSE_CACHE", str(tmp_path / "file" / "cache"))
    cache = Cache("host", "s3://b/w")
    folder, descriptor = cache.open_folder()
    assert folder.is_dir()
    cache.close_folder(folder, descriptor)
    assert not folder.parent.exists()


def test_the_usual_place_is_used_if_none_is_given(tmp_path, monkeypatch):
    monkeypatch.delenv("TRACEHOUSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    Cache("host", "s3://b/w")
    assert [path.name for path in (tmp_path / "xdg").iterdir()] == ["tracehouse"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    Cache("host", "s3://b/w")
    assert (tmp_path / ".cache/tracehouse").is_dir()
