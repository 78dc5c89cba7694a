"""The finder of packaged files."""

from __future__ import annotations

import pytest

from tracehouse.errors import TracehouseError
from tracehouse.resources import data_names, data_text


def test_names_of_a_folder_in_order(repo_root):
    names = data_names("arch")
    assert names == tuple(sorted(path.name for path in (repo_root / "data/arch").iterdir()))
    assert data_text(f"arch/{names[0]}").startswith("{")


@pytest.mark.parametrize("folder", ["nowhere", "arch/nowhere"])
def test_a_missing_folder_is_named(folder):
    with pytest.raises(TracehouseError, match=folder) as caught:
        data_names(folder)
    assert caught.value.code == "RESOURCE_MISSING"
