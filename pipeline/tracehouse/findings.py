"""Collecting what is odd in a file: code, count, first event, one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracehouse.errors import CODES, Code

EXAMPLE_LENGTH = 200


@dataclass(slots=True)
class Finding:
    """One code found in one trace."""

    code: Code
    count: int = 0
    first_event_id: int | None = None
    example: str | None = None


class Findings:
    """The findings of one trace, added up as they come.

    Adding is cheap and never fails; an unknown word is a programming error (KeyError).
    """

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def add(
        self, word: str, count: int = 1, event_id: int | None = None, example: str | None = None
    ) -> None:
        """Count `count` more occurrences of `word`.

        The first (lowest) event and its example are kept.
        """
        if count <= 0:
            return
        finding = self._found.get(word)
        if finding is None:
            finding = self._found[word] = Finding(CODES[word])
        finding.count += count
        earlier = event_id is not None and (
            finding.first_event_id is None or event_id < finding.first_event_id
        )
        if earlier:
            finding.first_event_id = event_id
        if example is not None and (finding.example is None or earlier):
            # Half a surrogate pair, as in a name that is not UTF-8, cannot be stored.
            storable = example[:EXAMPLE_LENGTH].encode(errors="backslashreplace")
            finding.example = storable.decode()

    def __contains__(self, word: object) -> bool:
        return word in self._found

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._found.values(), key=lambda f: f.code.word))

    def count(self, word: str) -> int:
        """How often `word` was found."""
        finding = self._found.get(word)
        return 0 if finding is None else finding.count

    def take(self) -> Findings:
        """Give all that was found so far away, and begin anew."""
        taken = Findings()
        taken._found, self._found = self._found, {}
        return taken

    def merge(self, other: Findings) -> None:
        """Add all of `other`."""
        for f in other:
            self.add(f.code.word, f.count, f.first_event_id, f.example)
