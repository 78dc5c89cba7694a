"""Cutting a fused name by trying every way to cut it."""

from __future__ import annotations

from itertools import pairwise


def ways(tokens, words):
    """Yield every list of known words and unknown single tokens that `tokens` may be."""
    if not tokens:
        yield []
        return
    for length in range(1, len(tokens) + 1):
        word = "_".join(tokens[:length])
        if length == 1 or word in words:
            for rest in ways(tokens[length:], words):
                yield [word, *rest]


def cost(way, words):
    """Return what counts, in its order; the last part prefers longer words."""
    unknown = sum(word not in words for word in way)
    out_of_order = sum(b <= a for a, b in pairwise(way))
    return (unknown, out_of_order, len(way), [-(word.count("_") + 1) for word in way])


def segment(text, words):
    """Return the known words of the cheapest way, and the tokens left over."""
    best = min(ways(text.split("_"), words), key=lambda way: cost(way, words))
    return tuple(w for w in best if w in words), [w for w in best if w not in words and w]
