"""Reports in a browser: one headless Chromium, one warehouse of samples and of hostile names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import DESKTOP, HOSTILE_CATEGORY, HOSTILE_KERNEL, HOSTILE_OP, Opened
from tracegen import Trace

import tracehouse
from tracehouse.commands import report


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    driven = pytest.importorskip(
        "playwright.sync_api", reason="tests in a browser need playwright, which extra `dev` brings"
    )
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("TRACEHOUSE_CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    if not path:
        pytest.skip("no Chromium; install it, or say where it is with TRACEHOUSE_CHROMIUM")
    with driven.sync_playwright() as driver:
        # Without its own sandbox: it runs as root in a container, on pages written here.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def samples(repo_root, tmp_path_factory) -> Path:
    """Return a warehouse of the samples, and of a trace whose names are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    trace = Trace().op(HOSTILE_OP, 0, 50, **{"Input Dims": [[2, 3]]}).launch(5, 4, correlation=1)
    trace.kernel(HOSTILE_KERNEL, 10, 20, correlation=1).kernel("=1+1", 40, 5)
    trace.op(HOSTILE_CATEGORY, 60, 20).launch(65, 4, correlation=2)
    trace.kernel(HOSTILE_CATEGORY, 70, 5, correlation=2)
    (folder / "<i>hostile.json").write_text(trace.text(), encoding="utf-8")
    out = tmp_path_factory.mktemp("report") / "out"
    tracehouse.analyze([repo_root / "data" / "samples", folder], out, workers=1)
    return out


@pytest.fixture(scope="session")
def opened(browser) -> Iterator[Callable[..., Any]]:
    """Return a context manager that opens an HTML file in a window of a size.

    One tab serves all: a new one costs more than the page. `apart` gives a tab of its own, to keep
    while others are open. Nothing is online.
    """
    context = browser.new_context(offline=True)
    tab = Opened(context.new_page())

    @contextmanager
    def opening(
        path: Path, size: tuple[int, int] = DESKTOP, *, dark: bool = False, apart: bool = False
    ) -> Iterator[Opened]:
        shown = Opened(context.new_page()) if apart else tab
        shown.page.set_viewport_size({"width": size[0], "height": size[1]})
        shown.page.emulate_media(color_scheme="dark" if dark else "light", media="screen")
        shown.said.clear()
        shown.visit(path)
        yield shown
        if apart:
            shown.page.close()

    yield opening
    context.close()


@pytest.fixture(scope="session")
def written(samples, tmp_path_factory) -> Callable[..., Path]:
    """Return a function that writes a report of the samples once, and says where it is."""
    folder = tmp_path_factory.mktemp("reports")
    made: dict[tuple[str | None, str | None], Path] = {}

    def write(trace: str | None = None, label: str | None = None) -> Path:
        if (trace, label) not in made:
            path = folder / f"{len(made)}.html"
            report.write(report.page_of(samples, trace=trace, label=label), "html", path)
            made[trace, label] = path
        return made[trace, label]

    return write
