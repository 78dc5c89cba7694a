"""Categories and families of ops, by the rules of data/op_categories.csv.

A category is what summaries group by; a family is what the formulas of `tracehouse.formulas` are
for.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass, replace

from tracehouse import resources
from tracehouse.errors import UsageError

UNKNOWN = "other"
NO_FAMILY = "none"
_COLUMNS = ("pattern", "match", "category", "family")
_MATCHES = ("exact", "prefix", "regex")


# SGLang's profiler numbers the kernels that it wraps.
_NUMBERED = re.compile(r"(sglang_profiler::\w*[A-Za-z])_\d+")


def plain_name(name: str) -> str:
    """Return the name of an op without the number that its producer gave to the one call site."""
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name


@dataclass(frozen=True, slots=True)
class Rule:
    """What a name that fits is: its category and its family, "" for that of the rules behind."""

    category: str
    family: str


_LONGEST = 4096  # characters of a name that rules look at
_NO_RULE = Rule(UNKNOWN, NO_FAMILY)


@dataclass(frozen=True, slots=True)
class OpCategories:
    """Rules for op names: exact names, then prefixes, then regexes; first hit.

    `otherwise`: the rules for names that none of these fits.
    """

    exact: dict[str, Rule]
    prefixes: tuple[tuple[str, Rule], ...]
    regexes: tuple[tuple[re.Pattern[str], Rule], ...]
    otherwise: OpCategories | None = None

    def rule(self, name: str) -> Rule:
        """Return the rule of the op `name`: category `other`, family `none` where none fits.

        Of a name without end only its start counts: a regex may take the square of its length.
        """
        name = name[:_LONGEST]
        found = self._first(plain_name(name))
        if found is not None and found.family:
            return found
        behind = _NO_RULE if self.otherwise is None else self.otherwise.rule(name)
        return behind if found is None else Rule(found.category, behind.family)

    def _first(self, name: str) -> Rule | None:
        if name in self.exact:
            return self.exact[name]
        for prefix, rule in self.prefixes:
            if name.startswith(prefix):
                return rule
        for regex, rule in self.regexes:
            if regex.search(name):
                return rule
        return None

    def category(self, name: str) -> str:
        """Return the category of the op `name`, `other` where no rule fits."""
        return self.rule(name).category

    def family(self, name: str) -> str:
        """Return the family of the op `name`, `none` where no rule fits."""
        return self.rule(name).family


def parse(text: str, *, source: str = "data/op_categories.csv") -> OpCategories:
    """Parse rules from CSV text with the columns pattern, match, category, family.

    An empty family is that of the rules that these go before, so that a new category alone takes no
    formula away.

    Raises:
        UsageError: a column is missing, or a row cannot be used; it names `source` and the line.
    """
    try:
        return _parsed(csv.DictReader(text.removeprefix("\ufeff").splitlines()), source)
    except csv.Error as error:
        raise UsageError(
            f"{source} is no CSV file: {error}",
            hint=f"its first line must be: {','.join(_COLUMNS)}",
        ) from error


def _parsed(reader: csv.DictReader[str], source: str) -> OpCategories:
    missing = set(_COLUMNS) - set(reader.fieldnames or ())
    if missing:
        raise UsageError(
            f"{source} has no column {', '.join(sorted(missing))}",
            hint=f"its first line must be: {','.join(_COLUMNS)}",
        )
    exact: dict[str, Rule] = {}
    prefixes: list[tuple[str, Rule]] = []
    regexes: list[tuple[re.Pattern[str], Rule]] = []
    for row in reader:
        where = f"{source}, line {reader.line_num}"
        pattern, match, category, family = (row[name] for name in _COLUMNS)
        if not pattern or not category or match not in _MATCHES:
            raise UsageError(
                f"{where}: a row needs a pattern, one of {', '.join(_MATCHES)}, and a category",
                hint="correct the row; without a family the op keeps its own",
            )
        rule = Rule(category, family or "")
        if match == "exact":
            exact.setdefault(pattern, rule)
        elif match == "prefix":
            prefixes.append((pattern, rule))
        else:
            regexes.append((_regex(pattern, where), rule))
    return OpCategories(exact, tuple(prefixes), tuple(regexes))


def _regex(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{where}: {pattern!r} is no regular expression: {error}", hint="correct the pattern"
        ) from error


@functools.cache
def load() -> OpCategories:
    """Return the rules that come with Tracehouse."""
    return parse(resources.data_text("op_categories.csv"))


def extended(text: str, source: str) -> OpCategories:
    """Return a user's rules from CSV text, then those that come with Tracehouse.

    Raises:
        UsageError: as in `parse`; `source` is the user's file.
    """
    return replace(parse(text, source=source), otherwise=load())
