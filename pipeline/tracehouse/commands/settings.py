"""From the options of a command to the settings of an analysis: read and tried at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracehouse.analysis.settings import CategoryFile, Settings
from tracehouse.errors import UsageError
from tracehouse.formulas.arch import chosen
from tracehouse.formulas.model_config import read_model_config
from tracehouse.formulas.user import read_model_file
from tracehouse.ingest.limits import DEFAULT_LIMITS, LEAST_EVENT_BYTES, Limits, parse_size
from tracehouse.serving.window import Workload, workload


def read_settings(
    *,
    categories: str | None = None,
    arch: str | None = None,
    models: Sequence[str] = (),
    inductor_cache: str | None = None,
    step_patterns: Sequence[str] = (),
    conc: int | None = None,
    osl: int | None = None,
    r: float | None = None,
    num_prompts: int | None = None,
    model_config: str | None = None,
) -> Settings:
    """Read the files that a user names.

    `categories`: a CSV file of op categories. `arch`: name of a device, or a JSON file of its
    peaks. `models`: Python files of formulas. `inductor_cache`: folder of the files that
    torch.compile made. `step_patterns`: regular expressions of annotations that are steps. `conc`,
    `osl`, `r`, `num_prompts`: parameters of the serving benchmark. `model_config`: config.json of
    the model that is served. UsageError says which of them cannot be used and why.
    """
    settings = Settings(
        categories=None if categories is None else _categories(categories),
        arch=None if arch is None else chosen(arch),
        models=tuple(read_model_file(path) for path in models),
        inductor_cache=None if inductor_cache is None else _folder(inductor_cache),
        step_patterns=tuple(step_patterns),
        workload=_workload(conc, osl, r, num_prompts),
        model_config=None if model_config is None else read_model_config(model_config),
    )
    _ = settings.rules, settings.grammars  # so that a wrong row is told now
    return settings


def read_limits(
    *,
    text: str | int | None = None,
    ratio: int | None = None,
    members: int | None = None,
    metadata: str | int | None = None,
    event: str | int | None = None,
) -> Limits:
    """Return the limits on a file that a user names, None for the default of each.

    `text`, `metadata`, `event`: bytes, or sizes such as 4GB or 64MiB. UsageError for what is no
    size, and for a ratio or a number of members below 1.
    """
    given = {
        "text_bytes": None if text is None else parse_size(str(text)),
        "ratio": None if ratio is None else _count(ratio, "ratio of text to packed bytes"),
        "members": None if members is None else _count(members, "number of members"),
        "metadata_bytes": None if metadata is None else parse_size(str(metadata)),
        "event_bytes": None if event is None else _event_size(str(event)),
    }
    return replace(DEFAULT_LIMITS, **{k: v for k, v in given.items() if v is not None})


def _event_size(text: str) -> int:
    size = parse_size(text)
    if size < LEAST_EVENT_BYTES:
        raise UsageError(f"{text} is too short for an event", hint="give 8MiB or more")
    return size


def _count(number: int, what: str) -> int:
    if number < 1:
        raise UsageError(f"{number} is no {what}", hint="give 1 or more")
    return number


def _workload(
    conc: int | None, osl: int | None, r: float | None, num_prompts: int | None
) -> Workload | None:
    given = [value is not None for value in (conc, osl, r)]
    if conc is None or osl is None or r is None:
        if any(given) or num_prompts is not None:
            raise UsageError(
                "a benchmark needs all of --conc, --osl and --r",
                hint="give the three of them; --num-prompts is 10 x CONC by default",
            )
        return None
    return workload(conc, osl, r, num_prompts)


def _folder(path: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {path}", hint="give the Inductor cache, e.g. torchinductor_USER"
        )
    return folder.resolve()


def _categories(path: str) -> CategoryFile:
    try:
        return CategoryFile(path, Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the categories of {path}: {error}",
            hint="give a CSV file with the columns pattern, match, category, family",
        ) from error
