"""Make the screenshots of README.md anew:  python docs/screenshots.py [FOLDER].

They show reports of data/samples, in a headless Chromium (extra `dev`, and chromium on the path).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import tracehouse
from tracehouse.commands import report

ROOT = Path(__file__).resolve().parent.parent
DESKTOP, PHONE = (1200, 760), (390, 760)
# File name, trace (None: the warehouse), window, dark mode, what is scrolled to the top.
SHOTS = (
    ("report-trace.png", "triton_block", DESKTOP, False, "header"),
    ("report-roofline.png", "triton_block", DESKTOP, False, "#roofline"),
    ("report-triton.png", "triton_block", DESKTOP, True, "#triton"),
    ("report-steps.png", "serving", DESKTOP, False, "#steps"),
    ("report-phone.png", "serving", PHONE, False, "#timeline"),
)


def main() -> None:
    """Write every screenshot below the folder given, or below `screenshots/` beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium on the path")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        work = Path(temporary)
        tracehouse.analyze([ROOT / "data" / "samples"], work / "warehouse", workers=1)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, trace, size, is_dark, top in SHOTS:
            path = work / "report.html"
            page = report.page_of(work / "warehouse", trace=trace)
            shown = replace(page, subtitle=page.subtitle.replace(f"{ROOT}/", ""))
            report.write(shown, "html", path)
            _shoot(browser, path, folder / name, size, is_dark, top)
            sys.stdout.write(f"{folder / name}\n")
        browser.close()


def _shoot(
    browser: Any, page: Path, target: Path, size: tuple[int, int], is_dark: bool, top: str
) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if is_dark else "light",
        offline=True,
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    if top == "#triton":
        tab.locator("[data-table=triton] .link").first.click()
    tab.evaluate(
        """(top) => { document.querySelector(top).scrollIntoView();
            if (document.activeElement) document.activeElement.blur(); }""",
        top,
    )
    tab.wait_for_timeout(300)  # the charts have drawn
    tab.screenshot(path=target)
    context.close()


if __name__ == "__main__":
    main()
