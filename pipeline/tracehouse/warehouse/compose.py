"""Live views as one query, with some of them replaced: other settings, fewer traces.

A stored view reads what it was made with. Here the texts of sql/warehouse become the common table
expressions of one statement, so that a caller can put a query of its own in the place of any.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracehouse.warehouse.catalogue import live_views


def composed(query: str, replaced: Mapping[str, str]) -> str:
    """Word `query` so that the live views it reads are evaluated anew.

    `replaced`: by the name of a view the SELECT that stands in for it; that finds the file's own
    rows under the name with `_own` before it. Only what the live views read needs to be stored.
    """
    parts = []
    for view in live_views():
        own = view.query
        if view.name in replaced:
            parts.append(f"_own{view.name} AS (\n{own}\n)")
            own = replaced[view.name]
        parts.append(f"{view.name} AS (\n{own}\n)")
    if query.lstrip().startswith("WITH"):  # its own expressions follow ours
        _, _, rest = query.partition("WITH")
        return "WITH\n" + ",\n".join(parts) + "," + rest
    return "WITH\n" + ",\n".join(parts) + "\n" + query
