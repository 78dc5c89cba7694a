"""Named queries with parameters: the files of a folder of sql/ that are no views.

A file holds one SELECT under the header of a view (see views.py); its parameters are `$name`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tracehouse.resources import sql_texts
from tracehouse.warehouse.views import View, parse_view

_PARAMETER = re.compile(r"\$([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Query:
    """One query: what its header says, as of a view, and the names of its parameters."""

    view: View
    parameters: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The SELECT."""
        return self.view.query


@cache
def load_queries(folder: str) -> dict[str, Query]:
    """Parse the queries of a folder of sql/, by name.

    Raises:
        TracehouseError: BAD_VIEW if a header is malformed, or what follows is not one SELECT;
            RESOURCE_MISSING if there is no such folder.
    """
    return {name: parse_query(name, text) for name, text in sql_texts(folder).items()}


def parse_query(name: str, text: str) -> Query:
    """Parse one file of a query; raises as load_queries."""
    view = parse_view(name, text, is_query=True)
    return Query(view, tuple(dict.fromkeys(_PARAMETER.findall(view.query))))
