"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile(
    "thorough", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_BUILT = {"build", "dist", "warehouse"}  # that git ignores, as it does hidden files


@pytest.fixture(scope="session", autouse=True)
def a_clean_checkout() -> Iterator[None]:
    """See that no test leaves anything beside the code: a folder `s3:` was committed once."""
    before = set(ROOT.iterdir())
    yield
    new = {path.name for path in set(ROOT.iterdir()) - before if not path.name.startswith(".")}
    assert new <= _BUILT, f"left in {ROOT}: {sorted(new)}"


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Return the folder of real traces beside the checkout, or skip."""
    folder = Path(os.environ.get("TRACEHOUSE_SHARED_TRACES", ROOT.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"no real traces in {folder}; TRACEHOUSE_SHARED_TRACES can say where they are")
    return folder
