"""A page as one HTML file that needs nothing else: no network, no other file.

The plotting library, our scripts and the data are inside. A content security policy lets only these
scripts run. Names are escaped in HTML and set as text by the scripts.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable

from tracehouse.pages.embed import page_data
from tracehouse.pages.model import Chart, Page, Section, Table
from tracehouse.pages.words import printable
from tracehouse.resources import page_text

_SCRIPTS = ("table.js", "charts.js", "page.js")


def render(page: Page) -> str:
    """Return the HTML of a page."""
    charts = [part for s in page.sections for part in s.parts if isinstance(part, Chart)]
    scripts = [_plotting_library()] if charts else []
    scripts.append("\n".join(page_text(name) for name in _SCRIPTS))
    number = iter(range(len(charts)))
    sections = [_section(section, lambda: next(number)) for section in page.sections]
    links = "".join(
        f'<li><a href="#{_escape(s.name)}">{_escape(s.title)}</a></li>' for s in page.sections
    )
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_escape(page.title)}</title>",
        f"<style>\n{page_text('page.css')}</style>\n</head>\n<body>",
        '<a class="skip" href="#main">Skip to the tables</a>',
        _header(page),
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
        '<main id="main">',
        "<noscript><p>The tables and charts of this page need JavaScript.</p></noscript>",
        *sections,
        f"</main>\n<footer><p>{_escape(page.footer)}</p></footer>",
        f'<script type="application/json" id="data">{page_data(page, charts)}</script>',
        *(f"<script>{script}</script>" for script in scripts),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _header(page: Page) -> str:
    facts = "".join(
        f'<div class="{_escape(fact.tone)}"><dt>{_escape(fact.name)}</dt>'
        f'<dd title="{_escape(fact.exact)}">{_escape(fact.value)}</dd></div>'
        for fact in page.facts
    )
    warnings = "".join(f"<li>{_escape(text)}</li>" for text in page.warnings)
    listed = f'<ul class="warnings" aria-label="Warnings">{warnings}</ul>' if warnings else ""
    return (
        f'<header><h1>{_escape(page.title)}</h1><p class="subtitle">{_escape(page.subtitle)}</p>'
        f'<dl class="facts">{facts}</dl>{listed}</header>'
    )


def _section(section: Section, next_chart: Callable[[], int]) -> str:
    note = f'<p class="note">{_escape(section.note)}</p>' if section.note else ""
    parts = []
    for part in section.parts:
        if isinstance(part, Chart):
            parts.append(
                f"<figure><figcaption>{_escape(part.title)}</figcaption>"
                f'<div class="chart" role="img" aria-label="{_escape(part.alt)}" '
                f'data-chart="{next_chart()}"></div></figure>'
            )
        else:
            parts.append(_table(part, with_head=bool(parts) or part.title != section.title))
    name = _escape(section.name)
    head = f'<section id="{name}" aria-labelledby="{name}-head">'
    return (
        f'{head}<h2 id="{name}-head">{_escape(section.title)}</h2>{note}{"".join(parts)}</section>'
    )


def _table(table: Table, *, with_head: bool) -> str:
    head = f"<h3>{_escape(table.title)}</h3>" if with_head else ""
    note = f'<p class="note">{_escape(table.note)}</p>' if table.note else ""
    return f'{head}{note}<div data-table="{_escape(table.name)}"></div>'


def _escape(text: str) -> str:
    """Return a text as HTML shows it; control characters, and those that turn text, as escapes."""
    return html.escape(printable(text, lines=True))


def _policy(scripts: list[str]) -> str:
    """Allow these scripts by their hashes, styles, and images that are in the page."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return _escape(
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _plotting_library() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
