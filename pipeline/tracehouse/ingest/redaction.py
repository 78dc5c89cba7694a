"""Taking secrets out of batches of events, before anything is stored or linked.

Undamaged traces hold none, so the text is searched for a handful of short marks first, in one
pass; only the values that hold one are judged one by one (`secrets`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehouse.compute.marks import Marks, before_plain_value, find
from tracehouse.findings import Findings
from tracehouse.ingest.batches import Dictionaries, EventBatch
from tracehouse.ingest.fields import WORD_KEYS
from tracehouse.ingest.secrets import redact, redact_json, redact_text

CODE = "SECRET_REDACTED"


def _any_case(pattern: str) -> list[bytes]:
    return [(c.lower() + c.upper()).encode() for c in pattern]


def _word(pattern: str) -> list[bytes]:
    return [c.encode() for c in pattern]


# Every text that `secrets` replaces holds one of these (a test compares the two).
_MARKS = Marks.of(
    [
        _word("hf_"),
        [b"g", b"h", b"pousr", b"_"],
        _word("_pat"),
        _word("lpa"),  # glpat-
        _word("sk-"),
        _word("pi-"),  # nvapi-, pypi-
        _word("xox"),
        [b"KS", b"I", b"A"],  # AKIA, ASIA
        _word("AIz"),
        _word("eyJ"),
        _word("--B"),
        _word("://"),
        _any_case("tok"),
        _any_case("ecr"),  # secret
        [*_any_case("ass"), b"wWpP"],  # password, passphrase
        _any_case("cred"),
        [b"-_ ISETHGNisethgn", *_any_case("key")],  # api_key, accessKey
        _any_case("pwd"),
        _any_case("bea"),  # Bearer
    ]
)


class Redactor:
    """Redacts the batches of one trace, in order, and counts what it replaces.

    In a name, and in every other word, the matching part is replaced; in args and extra the whole
    value. Shapes, types and strides hold none.
    """

    def __init__(self, dictionaries: Dictionaries, findings: Findings) -> None:
        self._dictionaries = dictionaries
        self._findings = findings
        self._judged = dict.fromkeys(dictionaries, 0)  # words looked at
        # Per column, for each code of a redacted word: its count and the code to use in its place.
        self._replaced: dict[str, dict[int, tuple[int, int]]] = {}
        self._texts: dict[str, dict[str, int]] = {}  # per column: redacted word → its code

    def batch(self, batch: EventBatch) -> EventBatch:
        """Return the batch without secrets; the same object if it holds none."""
        for column in self._dictionaries:
            self._judge_new_words(column)
        codes = {name: self._codes(name, batch) for name in self._replaced}
        args, extra = self._json(batch.args, batch), self._json(batch.extra, batch)
        if not codes and args is batch.args and extra is batch.extra:
            return batch
        return replace(batch, codes={**batch.codes, **codes}, args=args, extra=extra)

    def envelope(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Return the envelope without secrets."""
        redacted, count = redact(envelope)
        self._findings.add(CODE, count, example="beside the event list")
        return dict(redacted)

    def examples(self) -> None:
        """Redact the pieces of the file that the findings quote."""
        for finding in self._findings:
            if finding.example is not None:
                finding.example = redact_text(finding.example)[0]

    def _judge_new_words(self, column: str) -> None:
        """Replace in the dictionary, in place, the new words that hold a secret."""
        words = self._dictionaries[column].words
        start = self._judged[column]
        if len(words) == start:
            return
        self._judged[column] = len(words)
        known = self._texts.get(column)
        if known is not None:  # a word that stands in the file as another was redacted to
            for code in range(start, len(words)):
                if words[code] in known:
                    self._replaced[column][code] = 0, known[words[code]]
        redacted = redact_text if column in _PLAIN_COLUMNS else redact_json
        for row in rows_with_marks(pa.array(words[start:], pa.string())).tolist():
            code = start + row
            text, count = redacted(words[code])
            if count:
                known = self._texts.setdefault(column, {})
                first = words.index(text) if text in words else code
                words[code] = text
                self._replaced.setdefault(column, {})[code] = count, known.setdefault(text, first)

    def _codes(self, column: str, batch: EventBatch) -> NDArray[np.int32]:
        """The codes of a column, equal words with one code, and count what was replaced in them."""
        codes = batch.codes[column]
        own = codes
        for code, (count, stand_in) in self._replaced[column].items():
            rows = np.flatnonzero(codes == code)
            if len(rows) == 0:
                continue
            # What stands in args too is counted there.
            if column in _PLAIN_COLUMNS:
                self._found(count * len(rows), int(batch.event_id[rows[0]]), column)
            if stand_in != code:
                own = codes.copy() if own is codes else own
                own[rows] = stand_in
        return own

    def _json(self, texts: pa.StringArray, batch: EventBatch) -> pa.StringArray:
        """Redact an array of JSON texts."""
        changed: dict[int, str] = {}
        for row in rows_with_marks(texts).tolist():
            text, count = redact_json(texts[row].as_py())
            if count:
                changed[row] = text
                self._found(count, int(batch.event_id[row]), "args")
        return with_changes(texts, changed)

    def _found(self, count: int, event_id: int, where: str) -> None:
        self._findings.add(CODE, count, event_id, f"in {where} of the event")


_PLAIN_COLUMNS = frozenset(WORD_KEYS.values())  # the others hold JSON texts


def rows_with_marks(texts: pa.StringArray) -> NDArray[np.int64]:
    """The rows of JSON or plain texts that may hold a secret, ascending; no other row holds one."""
    _, offset_buffer, data_buffer = texts.buffers()
    if offset_buffer is None or data_buffer is None or len(texts) == texts.null_count:
        return np.zeros(0, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int32, len(texts) + 1, 4 * texts.offset)
    data = np.frombuffer(data_buffer, np.uint8)[: offsets[-1]]
    ends = find(data, _MARKS)
    if len(ends) == 0:
        return ends
    ends = ends[~before_plain_value(data, ends)]
    rows = np.unique(np.searchsorted(offsets, ends, side="right") - 1)
    return rows[rows >= 0]  # what stands before a slice belongs to no row


def with_changes(texts: pa.StringArray, changed: dict[int, str]) -> pa.StringArray:
    """Return the array with the texts of some rows, ascending, replaced."""
    if not changed:
        return texts
    mask = np.zeros(len(texts), np.bool_)
    mask[list(changed)] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(changed.values(), pa.string()))
