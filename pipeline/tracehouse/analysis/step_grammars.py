"""What annotations say: the grammars of data/step_grammars.csv, and the numbers they name.

A row of that file is a rule: a pattern that a whole annotation fits, the role it then has, and what
the numbers in it are. Groups name them (`(?P<c_sq>\\d+)`), and the group `pairs` holds `key=value`
words whose keys do; `names` translates keys. Annotations of one form differ in nothing but their
numbers, so that a rule is tried once a form.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse import resources
from tracehouse.analysis.columns import Codes, Ints, Mask
from tracehouse.compute.digits import read_numbers
from tracehouse.errors import UsageError
from tracehouse.schema import tables
from tracehouse.vocab import Role

UNPARSED = "unparsed"  # the rule for wordings that begin like a step's
_USER = "user"
_PAIRS = "pairs"
_LONGEST = 1_000  # characters of an annotation that a rule is tried on
_RUN = re.compile(r"\d+", re.ASCII)
_PAIR = re.compile(r"(?<!\w)(\w{1,40})=(\[[^\]]*\](?:\.\.\.\+\d+)?|\S+)", re.ASCII)
_PARTS = re.compile(r"(\d+)(?:/(\d+))?", re.ASCII)  # a batch, and the graph's it is padded to
_GROUP = re.compile(r"\(\?P<\w+>")


@dataclass(frozen=True, slots=True)
class Rule:
    """One grammar.

    phase: that of its steps, "" if the counts say it. traits: generic, it may hold more specific
    steps; gives_way, it is no step where its process has such; shared, other frameworks write it
    too; twice, it may be written by two threads at once; all_threads, work of the whole process
    belongs to it; one_each, a request decodes one token (and `spec` more), if it says nothing else;
    bounds, its counts are no more than that.
    """

    framework: str
    name: str
    role: Role
    phase: str
    traits: frozenset[str]
    names: dict[str, str]
    regex: re.Pattern[str]

    def fields(self, match: re.Match[str]) -> str:
        """Return what each run of digits in a matched annotation is: words, `-` for nothing."""
        text = match.string
        place = {run.start(): i for i, run in enumerate(_RUN.finditer(text))}
        words = ["-"] * len(place)

        def name_run(word: str, start: int, end: int) -> None:
            is_whole = start in place and _RUN.fullmatch(text, start, end)
            if is_whole and (word == "ctx" or word not in words):
                words[place[start]] = word

        for group in self.regex.groupindex:
            start, end = match.span(group)
            if group != _PAIRS:
                name_run(group, start, end)
                continue
            for pair in _PAIR.finditer(text, start, end):
                self._name_pair(pair, name_run)
        return " ".join(words)

    def _name_pair(self, pair: re.Match[str], name_run: Callable[[str, int, int], None]) -> None:
        key, value = pair[1], pair[2]
        word = self.names.get(key, key)
        if value.startswith("["):  # several values, then how many more there are
            listed, _, _ = value.partition("]")
            for run in _RUN.finditer(pair.string, pair.start(2), pair.end(2)):
                is_listed = run.start() < pair.start(2) + len(listed)
                name_run(word if is_listed else f"{word}_more", *run.span())
            return
        parts = _PARTS.fullmatch(pair.string, *pair.span(2))
        if parts:
            name_run(word, *parts.span(1))
            if parts[2]:
                name_run("graph_size", *parts.span(2))


@dataclass(frozen=True, slots=True)
class Sayings:
    """What some annotations (n,) say: their rule, -1 for none, and the numbers that rule names.

    `numbers` and `fields` have one entry an annotation, the numbers in their order and what each
    is; both are NULL without a rule.
    """

    rule: Ints
    numbers: pa.ListArray
    fields: pa.DictionaryArray


@dataclass(frozen=True, slots=True)
class Grammars:
    """The rules, in the order in which they are tried; the first `users` of them are a user's."""

    rules: tuple[Rule, ...]
    users: int = 0

    def read(self, texts: Sequence[str]) -> Sayings:
        """Say what annotations are, one or several hundred thousand distinct ones."""
        array = pa.array(texts, pa.large_string())
        _, offsets, data = array.buffers()
        first, value, known, form, example = read_numbers(
            np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64, len(texts) + 1)
        )
        forms = [_RUN.sub("0", texts[i]) for i in example.tolist()]
        rule, fields, words = _coded([self._first_fit(text, self.users) for text in forms], form)
        if self.users:
            rule, fields, words = self._of_user(texts, rule, fields, words)
        without = rule < 0
        return Sayings(
            rule,
            pa.ListArray.from_arrays(
                pa.array(first.astype(np.int32)),
                pa.array(value, mask=~known),
                mask=pa.array(without),
            ),
            pa.DictionaryArray.from_arrays(
                pa.array(fields, mask=without), pa.array(words, pa.string())
            ),
        )

    def _first_fit(self, text: str, start: int, stop: int | None = None) -> tuple[int, str] | None:
        """Return the first rule that a text fits, and what its numbers are."""
        if len(text) > _LONGEST or not (stop or self._any.fullmatch(text)):
            return None
        for number in range(start, len(self.rules) if stop is None else stop):
            match = self.rules[number].regex.fullmatch(text)
            if match:
                return number, self.rules[number].fields(match)
        return None

    def _of_user(
        self, texts: Sequence[str], rule: Ints, fields: Codes, words: list[str]
    ) -> tuple[Ints, Codes, list[str]]:
        """Let the user's rules go first: they may mean certain digits, so each text is tried."""
        own = [self._first_fit(text, 0, self.users) for text in texts]
        own_rule, own_fields, own_words = _coded(own, np.arange(len(texts)))
        is_own = own_rule >= 0
        return (
            np.where(is_own, own_rule, rule),
            np.where(is_own, own_fields + len(words), fields).astype(np.int32),
            words + own_words,
        )

    @property
    def _any(self) -> re.Pattern[str]:
        return _any_of(tuple(rule.regex.pattern for rule in self.rules[self.users :]))

    def has(self, trait: str) -> Mask:
        """Return for each rule, and for none at last, whether it has a trait."""
        return np.array([*(trait in rule.traits for rule in self.rules), False])

    def table(self) -> pa.Table:
        """Return the rules as rows of STEP_GRAMMARS."""
        rows = [
            {
                "place": place,
                "framework": rule.framework or None,
                "rule": rule.name,
                "role": rule.role.value,
                "phase": rule.phase or None,
                "traits": " ".join(sorted(rule.traits)),
                "names": " ".join(f"{key}={word}" for key, word in rule.names.items()),
                "pattern": rule.regex.pattern,
            }
            for place, rule in enumerate(self.rules, 1)
        ]
        return pa.Table.from_pylist(rows, tables.STEP_GRAMMARS.schema)


@functools.cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one pattern that fits what any of them does: most texts fit none."""
    return re.compile("|".join(_GROUP.sub("(?:", pattern) for pattern in patterns), re.ASCII)


def _coded(found: Sequence[tuple[int, str] | None], number: Ints) -> tuple[Ints, Codes, list[str]]:
    """Return the rule and the code of the fields of each number, and the distinct fields."""
    words = {fit[1]: 0 for fit in found if fit}
    place = {word: i for i, word in enumerate(words)}
    rule = np.array([-1 if fit is None else fit[0] for fit in found], dtype=np.int64)
    fields = np.array([-1 if fit is None else place[fit[1]] for fit in found], dtype=np.int32)
    if not len(found):
        return np.empty(0, np.int64), np.empty(0, np.int32), []
    return rule[number], fields[number], list(words)


@functools.cache
def load() -> Grammars:
    """Return the rules that come with Tracehouse."""
    rows = csv.DictReader(resources.data_text("step_grammars.csv").splitlines())
    return Grammars(
        tuple(
            Rule(
                framework=row["framework"],
                name=row["rule"],
                role=Role(row["role"]),
                phase=row["phase"],
                traits=frozenset(row["traits"].split()),
                names=dict(pair.split("=") for pair in row["names"].split()),
                regex=re.compile(row["pattern"], re.ASCII),
            )
            for row in rows
        )
    )


@functools.cache
def extended(patterns: tuple[str, ...]) -> Grammars:
    """Return a user's patterns as rules, then those that come with Tracehouse.

    Raises:
        UsageError: one is no regular expression.
    """
    own = tuple(_user_rule(pattern, number) for number, pattern in enumerate(patterns, 1))
    return Grammars(own + load().rules, len(own))


def _user_rule(pattern: str, number: int) -> Rule:
    try:
        regex = re.compile(pattern, re.ASCII)
    except re.error as error:
        raise UsageError(
            f"{pattern!r} is no regular expression: {error}",
            hint="write one that fits whole annotations, e.g. 'iter_(?P<iteration>\\d+)'",
        ) from error
    name = _USER if number == 1 else f"{_USER}_{number}"
    return Rule(_USER, name, Role.STEP, "", frozenset({"all_threads"}), {}, regex)
