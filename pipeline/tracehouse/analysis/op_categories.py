"""Categories of ops, by the rules of data/op_categories.csv."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass

from tracehouse import resources

UNKNOWN = "other"


@dataclass(frozen=True, slots=True)
class OpCategories:
    """Rules from op names to categories: exact names, then prefixes, then regexes; first hit."""

    exact: dict[str, str]
    prefixes: tuple[tuple[str, str], ...]
    regexes: tuple[tuple[re.Pattern[str], str], ...]

    def category(self, name: str) -> str:
        """Return the category of the op `name`, `other` where no rule fits."""
        if name in self.exact:
            return self.exact[name]
        for prefix, category in self.prefixes:
            if name.startswith(prefix):
                return category
        for regex, category in self.regexes:
            if regex.search(name):
                return category
        return UNKNOWN


def parse(text: str) -> OpCategories:
    """Parse rules from CSV text with the columns pattern, match, category, family."""
    rules: dict[str, list[tuple[str, str]]] = {"exact": [], "prefix": [], "regex": []}
    for row in csv.DictReader(text.splitlines()):
        rules[row["match"]].append((row["pattern"], row["category"]))
    return OpCategories(
        exact=dict(rules["exact"]),
        prefixes=tuple(rules["prefix"]),
        regexes=tuple((re.compile(pattern), category) for pattern, category in rules["regex"]),
    )


@functools.cache
def load() -> OpCategories:
    """Return the rules that come with Tracehouse."""
    return parse(resources.data_text("op_categories.csv"))
