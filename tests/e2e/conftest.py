"""Fixtures that several modules here share."""

from __future__ import annotations

import pytest
from warehouses import analyse

from tracehouse.commands import division


@pytest.fixture(scope="session")
def samples_alone(tmp_path_factory, repo_root):
    """Return the warehouse of the samples, made in this process, a part a file, and its report."""
    out = tmp_path_factory.mktemp("alone") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "PART_BYTES", 1)
        return out, analyse(repo_root / "data" / "samples", out=out)
