"""Names of compiled kernels: kind, fused ops, index.

`triton_<kind>_fused_<op>_<op>…_<index>`. The ops are the names of the original ATen packets,
each once, in the order of strings, joined by `_`, which the names themselves hold too.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tracehouse.triton.vocabulary import Vocabulary, vocabulary

KINDS = ("poi", "red", "per", "tem", "for", "spl", "unk")
UNKNOWN_KIND = "unk"
MAX_NAME_LENGTH = 4096
TOO_LONG = "the name is too long to be cut into ops"
_CACHED_NAMES = 16_384

_FUSED = re.compile(
    r"triton_(poi|red|per|tem|for|spl|unk)_fused(?:_(.*))?_(\d+)"
    r"(?:_0(?=[\ddec]*[dec])[\ddec]*)?",  # old Triton: how its arguments were specialised
    re.ASCII,
)
_UNNAMED = re.compile(
    r"triton_\d*|triton__(?=[\ddec]*\d)[\ddec]+|triton kernel|Placeholder\.DESCRIPTIVE_NAME",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class KernelName:
    """What the name of a compiled kernel says.

    kind: a word of KINDS. fused: the joined ops, "" if none. index: its number in the graph, None
    if not said. is_unique: False if unique kernel names were off, so that the name tells no ops.
    """

    kind: str
    fused: str = ""
    index: int | None = None
    is_unique: bool = True


@dataclass(frozen=True, slots=True)
class Segmentation:
    """The ops of a fused name.

    ops: the known ones, in the order of the name. unknown: every other part. why: why nothing was
    recognised, None if that is not so.
    """

    ops: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    why: str | None = None


@functools.lru_cache(_CACHED_NAMES)
def parse_name(name: str) -> KernelName | None:
    """Take the name of a kernel apart; None for one that torch.compile did not give."""
    match = _FUSED.fullmatch(name)
    if match is not None:
        kind, fused, index = match.groups()
        # Digits without end are a text, not a number.
        return KernelName(kind, fused or "", int(index) if len(index) < 19 else None)
    if _UNNAMED.fullmatch(name) is None:
        return None
    digits = name.removeprefix("triton_")
    index_of_name = int(digits) if digits.isdecimal() and len(digits) < 19 else None
    return KernelName(UNKNOWN_KIND, index=index_of_name, is_unique=False)


@functools.lru_cache(_CACHED_NAMES)
def segment(text: str) -> Segmentation:
    """Cut joined op names apart: `_unsafe_view_mul_silu` is `_unsafe_view`, `mul`, `silu`.

    Of all ways to cut, the one with the fewest unknown tokens, then the fewest neighbours out of
    strictly increasing order, then the fewest ops, then the longer word where two first differ.

    Args:
        text: the joined ops, as KernelName.fused.

    Cost: a step for each token, each name that ends before it and each that starts with it.
    """
    if not text:
        return Segmentation(())
    if len(text) > MAX_NAME_LENGTH:
        return Segmentation((), (text,), TOO_LONG)
    known = vocabulary()
    tokens = text.split("_")
    words = _cheapest(tokens, known)
    parts: list[str] = []
    unfinished = False  # an unknown token ended without a word: empty tokens are its underscores
    ops = []
    for word in words:
        if word in known:
            ops.append(word)
            unfinished = False
        elif unfinished and (not word or not parts[-1].strip("_")):
            parts[-1] += f"_{word}"
        else:
            parts.append(word)
            unfinished = True
    return Segmentation(tuple(ops), tuple(part for part in parts if part))


def _words_at(tokens: list[str], start: int, known: Vocabulary) -> list[tuple[int, str]]:
    """Name the known words that start at a token, longest first, each with its end."""
    ends = range(min(len(tokens), start + known.longest), start, -1)
    spelled = ((end, "_".join(tokens[start:end])) for end in ends)
    return [(end, word) for end, word in spelled if word in known]


def _cheapest(tokens: list[str], known: Vocabulary) -> list[str]:
    """Cut by dynamic programming from the end; the state is a token and the word before it."""
    arcs = [_words_at(tokens, start, known) for start in range(len(tokens))]
    for start, found in enumerate(arcs):
        if not found or found[-1][0] > start + 1:
            found.append((start + 1, tokens[start]))  # as an unknown token
    before: list[list[str]] = [[] for _ in range(len(tokens) + 1)]
    for found in arcs:
        for end, word in found:
            before[end].append(word)
    before[0] = [""]

    nothing = (0, 0, 0)
    best: list[dict[str, tuple[tuple[int, int, int], int, str]]] = [{} for _ in tokens]
    for start in range(len(tokens) - 1, -1, -1):
        for previous in before[start]:
            chosen: tuple[tuple[int, int, int], int, str] | None = None
            for end, word in arcs[start]:
                rest = best[end][word][0] if end < len(tokens) else nothing
                cost = (
                    rest[0] + (word not in known),
                    rest[1] + (start > 0 and word <= previous),
                    rest[2] + 1,
                )
                if chosen is None or cost < chosen[0]:
                    chosen = (cost, end, word)
            assert chosen is not None
            best[start][previous] = chosen
    words = []
    position, previous = 0, ""
    while position < len(tokens):
        _, position, previous = best[position][previous]
        words.append(previous)
    return words
