"""What an analysis depends on beside the trace: the user's categories, device and formulas."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import xxhash

from tracehouse import __version__
from tracehouse.analysis import op_categories
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.formulas.arch import Arch
from tracehouse.formulas.user import ModelFile, UserModel


@dataclass(frozen=True, slots=True)
class CategoryFile:
    """A file of categories: where it was, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's choices.

    categories: rules that go before those of data/op_categories.csv. arch: peaks of the device,
    None to recognise it in each trace. models: formulas, of which a later file's goes before an
    earlier one's.
    """

    categories: CategoryFile | None = None
    arch: Arch | None = None
    models: tuple[ModelFile, ...] = ()

    @property
    def rules(self) -> OpCategories:
        """The categories of ops; UsageError if the user's cannot be used."""
        if self.categories is None:
            return op_categories.load()
        return _rules(self.categories)

    @property
    def user_models(self) -> dict[str, UserModel]:
        """The user's formulas, by op name; UsageError if a file cannot be used."""
        found: dict[str, UserModel] = {}
        for file in self.models:
            found |= file.models()
        return found

    @property
    def digest(self) -> str:
        """A hash of all that changes the rows of a trace: the choices, and Tracehouse's version."""
        words = [__version__, repr(self.categories), repr(self.arch), repr(self.models)]
        return xxhash.xxh3_64("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _rules(file: CategoryFile) -> OpCategories:
    return op_categories.extended(file.text, file.path)


DEFAULT = Settings()
