"""A report in a browser: how tests read it and act on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HOSTILE_OP = "<script>alert(1)</script>"
HOSTILE_KERNEL = "\x1b[31mred</script><img src=x onerror=alert(2)>"
HOSTILE_CATEGORY = "<b>bold</b> & %{x}"
PHONE, DESKTOP = (390, 844), (1400, 900)


class Opened:
    """A report in the browser, and what the console said."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", self._alerted)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.said.append(message.text)

    def _alerted(self, dialog: Any) -> None:
        self.said.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def visit(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", state="attached")

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def heads(self, table: str) -> list[str]:
        return list(
            self.page.eval_on_selector_all(
                f"[data-table={table}] > .scroll > table > thead th",
                "heads => heads.map(head => head.dataset.column)",
            )
        )

    def shown(self, table: str, attribute: str = "textContent") -> list[dict[str, str]]:
        """Return the rows that a table shows, by name of column."""
        rows = self.page.eval_on_selector_all(
            f"[data-table={table}] > .scroll > table > tbody > tr[data-row]",
            f"rows => rows.map(row => [...row.cells].map(cell => cell.{attribute}))",
        )
        return [dict(zip(self.heads(table), row, strict=True)) for row in rows]

    def exact(self, table: str) -> list[dict[str, str]]:
        """Return the same, numbers in full as on hover."""
        return self.shown(table, "title || cell.textContent")

    def sort(self, table: str, column: str) -> None:
        self.page.click(f"[data-table={table}] th[data-column={column}] button")

    def filter(self, table: str, text: str) -> None:
        self.page.fill(f"[data-table={table}] input[type=search]", text)
