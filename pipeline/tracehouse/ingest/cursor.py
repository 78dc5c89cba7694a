"""A window over a stream of text blocks.

What the readers look through, with room behind for the scanner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tracehouse.ingest.limits import DEFAULT_LIMITS, Limits
from tracehouse.ingest.scanner import PADDING, skip_blank


class Cursor:
    """The text from `at` to `end` of the buffer `text`, of which `more` brings the next block.

    The buffer always has PADDING zero bytes behind `end`. Memory is that of one block and what of
    the last one is still unread.
    """

    def __init__(self, blocks: Iterable[bytes], limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._blocks: Iterator[bytes] = iter(blocks)
        self.text: NDArray[np.uint8] = np.zeros(PADDING, np.uint8)
        self.at = 0
        self.end = 0
        self.complete = False  # no block is left

    def more(self) -> bool:
        """Append the next block.

        False if there is none. What stands before `at` goes, so that `at` becomes 0.
        """
        block = b""
        while not block:
            try:
                block = next(self._blocks)
            except StopIteration:
                self.complete = True
                return False
        unread = self.end - self.at
        size = unread + len(block)
        if self.text.shape[0] < size + PADDING:
            text = np.empty(size + max(size // 4, PADDING), np.uint8)
        else:
            text = self.text
        # numpy copies overlapping ranges correctly.
        text[:unread] = self.text[self.at : self.end]
        text[unread:size] = np.frombuffer(block, np.uint8)
        text[size : size + PADDING] = 0
        self.text, self.at, self.end = text, 0, size
        return True

    def rest(self) -> bytes:
        """The unread text at hand."""
        return self.text[self.at : self.end].tobytes()

    def skip_blank(self) -> bool:
        """Go to the next character that is no white space; False if there is none."""
        while True:
            self.at = min(skip_blank(self.text, self.at), self.end)
            if self.at < self.end:
                return True
            if not self.more():
                return False

    def put_before(self, text: bytes) -> None:
        """Let `text` stand before the unread text."""
        blocks = self._blocks
        self._blocks = iter([text, self.rest()])
        self.at = self.end
        self.more()
        self.more()
        self._blocks = blocks

    def append(self, text: bytes) -> None:
        """Let `text` stand behind the last block."""
        self._blocks = chain(self._blocks, [text])
        self.complete = False

    def skip_all(self) -> None:
        """Go to the end of the text."""
        self.at = self.end
        while self.more():
            self.at = self.end
