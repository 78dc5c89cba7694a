"""Tracehouse: archives of PyTorch profiler traces as Parquet and a DuckDB warehouse.

    import tracehouse

    tracehouse.analyze(["archive/"], "warehouse")
    tracehouse.open("warehouse").sql("SELECT path, status FROM traces")
    tracehouse.read("run.pt.trace.json.gz").kernels

Importing this package loads no heavy library; each function loads what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehouse.analysis.settings import Settings
    from tracehouse.commands.analyze import RunReport
    from tracehouse.commands.read import Trace
    from tracehouse.warehouse.query import Warehouse

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "open", "read"]


def analyze(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    memory_limit: str | None = None,
    wait: float = 0.0,
    label: str | None = None,
    reader: str = "scan",
    keep_secrets: bool = False,
    categories: str | PathLike[str] | None = None,
    arch: str | PathLike[str] | None = None,
    models: Sequence[str | PathLike[str]] = (),
    inductor_cache_dir: str | PathLike[str] | None = None,
    capture: str | PathLike[str] | None = None,
    step_patterns: Sequence[str] = (),
    model_config: str | PathLike[str] | None = None,
    max_text: str | int | None = None,
    max_ratio: int | None = None,
    max_members: int | None = None,
    max_metadata: str | int | None = None,
    max_event: str | int | None = None,
) -> RunReport:
    """Analyse every new or changed trace of `paths` into the warehouse `out`.

    `paths`: files, folders, globs or URLs. `out`: a folder, or s3://bucket/prefix. `workers`:
    processes, None for as many as there are cores and memory for; 1 runs in this process. `dask`:
    address or scheduler file of a Dask cluster that does the work instead. `memory_limit`: what all
    processes may use together, such as "8GB". `wait`: seconds to wait for another run that writes
    to `out`. `label`: names the runs of one job, None takes the folder's name. `reader`: `scan` or
    `ijson`. `keep_secrets`: store values that look like secrets as they are, where they are
    `redacted` else. `categories`: CSV file of op categories that go before ours. `arch`: name of
    the device, or a JSON file of its peaks; None to recognise it. `models`: Python files of
    formulas. `inductor_cache_dir`: folder of the files that torch.compile made, None to look where
    Inductor keeps it. `capture`: folder or file of the traces taken while graphs were captured,
    beside those in a folder `capture_traces` next to a trace. `step_patterns`: regular expressions
    of annotations that are steps, whose named groups (r, c_sq …) become columns of `steps`.
    `model_config`: config.json of the model that is served, for attention whose inputs do not tell
    its heads. `max_text`, `max_ratio`, `max_members`, `max_metadata`, `max_event`: how much of one
    file is read, as docs/limits.md has it; sizes in bytes, or such as "4GB" and "64MiB"; None for
    the default of each. A file that cannot be read is rejected in the report and never raises;
    UsageError for a path that does not exist, or an option or its file that cannot be used.
    """
    from tracehouse.commands import analyze as command
    from tracehouse.commands.memory import parse_amount
    from tracehouse.commands.settings import read_limits

    given = [paths] if isinstance(paths, str | PathLike) else paths
    return command.analyze(
        [str(path) for path in given],
        Path(out),
        workers=workers,
        dask=dask,
        memory_limit=None if memory_limit is None else parse_amount(memory_limit),
        wait=wait,
        label=label,
        reader=reader,
        keep_secrets=keep_secrets,
        capture=None if capture is None else str(capture),
        settings=_settings(
            categories, arch, models, inductor_cache_dir, step_patterns, model_config
        ),
        limits=read_limits(
            text=max_text,
            ratio=max_ratio,
            members=max_members,
            metadata=max_metadata,
            event=max_event,
        ),
    )


def open(out: str | PathLike[str]) -> Warehouse:
    """Open the warehouse in a folder or at s3://…, read-only; UsageError where there is none."""
    from tracehouse.warehouse.query import Warehouse

    return Warehouse(Path(out))


def read(
    path: str | PathLike[str],
    *,
    reader: str = "scan",
    keep_secrets: bool = False,
    categories: str | PathLike[str] | None = None,
    arch: str | PathLike[str] | None = None,
    models: Sequence[str | PathLike[str]] = (),
    inductor_cache_dir: str | PathLike[str] | None = None,
    capture: str | PathLike[str] | None = None,
    step_patterns: Sequence[str] = (),
    model_config: str | PathLike[str] | None = None,
) -> Trace:
    """Read the trace at `path` into Arrow tables, storing nothing; options as in analyze.

    RejectedFile if nothing of it is usable.
    """
    from tracehouse.commands.read import read as read_trace

    settings = _settings(categories, arch, models, inductor_cache_dir, step_patterns, model_config)
    return read_trace(
        str(path),
        reader=reader,
        keep_secrets=keep_secrets,
        capture=None if capture is None else str(capture),
        settings=settings,
    )


def _settings(
    categories: str | PathLike[str] | None,
    arch: str | PathLike[str] | None,
    models: Sequence[str | PathLike[str]],
    inductor_cache_dir: str | PathLike[str] | None,
    step_patterns: Sequence[str],
    model_config: str | PathLike[str] | None,
) -> Settings:
    from tracehouse.commands.settings import read_settings

    return read_settings(
        categories=None if categories is None else str(categories),
        arch=None if arch is None else str(arch),
        models=[str(path) for path in models],
        inductor_cache=None if inductor_cache_dir is None else str(inductor_cache_dir),
        step_patterns=step_patterns,
        model_config=None if model_config is None else str(model_config),
    )
