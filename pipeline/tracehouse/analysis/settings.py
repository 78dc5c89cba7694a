"""What an analysis depends on beside the trace: the user's categories, device and formulas."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tracehouse import __version__
from tracehouse.analysis import op_categories, step_grammars
from tracehouse.analysis.op_categories import OpCategories
from tracehouse.analysis.step_grammars import Grammars
from tracehouse.formulas.arch import Arch
from tracehouse.formulas.model_config import ModelConfig
from tracehouse.formulas.user import ModelFile, UserModel
from tracehouse.serving.window import Workload


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
    earlier one's. inductor_cache: folder of the compiled kernels' files, None to look where
    Inductor keeps it. step_patterns: regular expressions of annotations that are steps, tried
    before the rules of data/step_grammars.csv. workload: the serving benchmark that was run.
    model_config: attention of the model, for calls whose inputs do not say it.
    """

    categories: CategoryFile | None = None
    arch: Arch | None = None
    models: tuple[ModelFile, ...] = ()
    inductor_cache: Path | None = None
    step_patterns: tuple[str, ...] = ()
    workload: Workload | None = None
    model_config: ModelConfig | None = None

    @property
    def rules(self) -> OpCategories:
        """The categories of ops; UsageError if the user's cannot be used."""
        if self.categories is None:
            return op_categories.load()
        return _rules(self.categories)

    @property
    def grammars(self) -> Grammars:
        """The rules for steps; UsageError if the user's cannot be used."""
        return step_grammars.extended(self.step_patterns)

    @property
    def user_models(self) -> dict[str, UserModel]:
        """The user's formulas, by op name; UsageError if a file cannot be used."""
        found: dict[str, UserModel] = {}
        for file in self.models:
            found |= file.models()
        return found

    @property
    def model_texts(self) -> tuple[str, ...]:
        """The texts of the user's formulas, wherever their files are."""
        return tuple(file.text for file in self.models)

    @property
    def digest(self) -> str:
        """A hash of all that changes the rows of a trace: the choices, and Tracehouse's version."""
        texts = (None if self.categories is None else self.categories.text, self.model_texts)
        words = [__version__, repr(texts), repr(self.arch)]
        words.append(str(self.inductor_cache))
        words += [repr(self.step_patterns), repr(self.workload), repr(self.model_config)]
        return xxhash.xxh3_64("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _rules(file: CategoryFile) -> OpCategories:
    return op_categories.extended(file.text, file.path)


DEFAULT = Settings()
