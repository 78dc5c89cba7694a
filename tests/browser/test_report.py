"""A report in a browser: what it shows is what the warehouse holds."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from browsing import DESKTOP, HOSTILE_CATEGORY, HOSTILE_OP, PHONE
from plotly.offline import get_plotlyjs

import tracehouse
from tracehouse.commands import report


def query(out: Path, sql: str) -> list[dict[str, object]]:
    with tracehouse.open(out) as warehouse:
        return warehouse.sql(sql).to_pylist()


def of(trace: str) -> str:
    return f"trace_id = (SELECT trace_id FROM traces WHERE path LIKE '%{trace}%')"


def full(value: object, unit: str = "") -> str:
    """Write a number as a cell tells it on hover."""
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) else repr(value).removesuffix(".0")
    if isinstance(value, float) and value.is_integer():
        text = f"{int(value):,}"
    return f"{text} {unit}".strip()


@pytest.fixture(scope="module")
def training(opened, written):
    """Open the report of the training sample once; each test has a table of its own."""
    with opened(written("training"), apart=True) as shown:
        yield shown
        assert shown.said == []


def test_op_args_are_those_of_the_warehouse(training, samples):
    rows = query(
        samples,
        "SELECT name, category, direct_kernel_time_ns AS ns, pct, cumulative_pct, count, mean_ns"
        f" FROM op_args_summary WHERE {of('training')}"
        " ORDER BY ns DESC, name, signature_id LIMIT 15",
    )
    cells = training.exact("op_args")
    assert [(c["op"], c["category"]) for c in cells] == [(r["name"], r["category"]) for r in rows]
    assert [(c["gpu_time_ns"], c["count"]) for c in cells] == [
        (full(r["ns"], "ns"), full(r["count"])) for r in rows
    ]
    assert [(c["share_pct"], c["mean_ns"]) for c in cells] == [
        (full(r["pct"], "%"), full(r["mean_ns"], "ns")) for r in rows
    ]
    rounded = [float(c["share_pct"].lstrip("<")) for c in training.shown("op_args")]
    assert rounded == [max(round(r["pct"], 2), 0.01) for r in rows]


def test_sorting_by_a_head(training, samples):
    rows = query(samples, f"SELECT name, count, pct FROM kernel_summary WHERE {of('training')}")
    training.sort("kernels", "count")
    counts = [int(c["count"].replace(",", "")) for c in training.shown("kernels")]
    assert counts == sorted((r["count"] for r in rows), reverse=True)[:15]
    head = training.page.locator("[data-table=kernels] th[data-column=count]")
    assert head.get_attribute("aria-sort") == "descending"
    training.sort("kernels", "count")
    counts = [int(c["count"].replace(",", "")) for c in training.shown("kernels")]
    assert counts == sorted(r["count"] for r in rows)[:15]
    training.sort("kernels", "count")  # as it was: longest time first
    assert head.get_attribute("aria-sort") is None
    shares = [float(c["share_pct"].lstrip("<")) for c in training.shown("kernels")]
    assert shares == sorted(shares, reverse=True)


def test_filtering_by_words_and_numbers(training, samples):
    rows = query(samples, f"SELECT name, pct, category FROM op_summary WHERE {of('training')}")
    training.filter("ops", "ATEN:: mm")  # words in any order, whatever their case
    found = {c["op"] for c in training.shown("ops")}
    assert found == {r["name"] for r in rows if "aten::" in r["name"] and "mm" in r["name"]}
    training.filter("ops", "share_pct>5")
    assert {c["op"] for c in training.shown("ops")} == {r["name"] for r in rows if r["pct"] > 5}
    training.filter("ops", "category:gemm")
    assert {c["op"] for c in training.shown("ops")} == {
        r["name"] for r in rows if "gemm" in r["category"].lower()
    }
    training.filter("ops", "no such op")
    assert training.shown("ops") == []
    assert "No row fits" in training.page.inner_text("[data-table=ops]")


def test_the_headline_is_the_warehouses(training, samples):
    (row,) = query(
        samples,
        "SELECT busy_pct, total_ns, modelled_pct, kernels FROM traces JOIN trace_timeline"
        f" USING (trace_id) JOIN coverage USING (trace_id) WHERE {of('training')}",
    )
    facts = training.page.eval_on_selector_all(
        ".facts div",
        "all => all.map(f => [f.children[0].textContent, f.children[1].title])",
    )
    exact = dict(facts)
    assert exact["GPU busy"] == f"{row['busy_pct']} %"
    assert exact["GPU time, first to last"] == f"{row['total_ns']:,} ns"
    assert exact["modelled, of op time"] == f"{row['modelled_pct']} %"
    assert exact["kernels"] == f"{row['kernels']:,}"


def test_points_of_the_roofline_are_its_rows(training, samples):
    rows = query(
        samples,
        f"SELECT category, flops_per_byte AS x, tflops_s AS y FROM roofline WHERE {of('training')}"
        " AND flops > 0 AND bytes > 0 AND kernel_time_ns > 0",
    )
    drawn = training.page.evaluate(
        """() => [...document.querySelectorAll("[data-chart]")]
            .filter(host => host.layout.xaxis.type === "log")
            .flatMap(host => host.data).filter(line => line.mode === "markers")
            .flatMap(line => line.x.map((x, i) => [line.name, x, line.y[i]]))"""
    )
    assert sorted(map(tuple, drawn)) == sorted((r["category"], r["x"], r["y"]) for r in rows)
    assert drawn


def test_a_click_walks_through_a_compiled_kernel(opened, written, samples):
    (row,) = query(
        samples,
        f"SELECT name, bytes FROM triton_summary WHERE {of('triton_block')}"
        " ORDER BY kernel_time_ns DESC NULLS LAST, name, signature_id, kernel_hash LIMIT 1",
    )
    with opened(written("triton_block")) as shown:
        button = shown.page.locator("[data-table=triton] .link").first
        assert button.text_content() == row["name"]
        button.focus()
        shown.page.keyboard.press("Enter")
        walk = shown.page.inner_text("[data-table=triton] tr.detail")
        assert f"bytes_moved  = {row['bytes']:,.0f} = " in walk
        assert "xnumel" in walk
        assert shown.page.locator("[data-table=triton] .link").first.is_visible()
        shown.page.keyboard.press("Enter")  # focus stays on the kernel
        assert shown.page.locator("[data-table=triton] tr.detail").count() == 0
        assert shown.said == []


def test_steps_and_steady_regions(opened, written, samples):
    steps = query(samples, f"SELECT step_id, r FROM steps WHERE {of('serving')} ORDER BY step_id")
    regions = query(
        samples,
        f"SELECT first_step, last_step FROM steady_state WHERE {of('serving')}"
        " AND kind NOT IN ('ramp_up', 'ramp_down')",
    )
    with opened(written("serving")) as shown:
        lines, shaded = shown.page.evaluate(
            """() => {
                const host = [...document.querySelectorAll("[data-chart]")]
                    .find(host => host.layout.shapes && host.layout.shapes.length);
                return [host.data.map(line => [line.name, line.x, line.y]),
                    host.layout.shapes.map(shape => [shape.x0, shape.x1])];
            }"""
        )
    requests = next(line for line in lines if line[0] == "requests")
    assert requests[1:] == [[s["step_id"] for s in steps], [s["r"] for s in steps]]
    assert shaded == [[r["first_step"] - 0.5, r["last_step"] + 0.5] for r in regions]


def test_hostile_names_are_text(opened, written):
    with opened(written("<i>hostile")) as shown:
        assert shown.page.inner_text("h1") == "<i>hostile.json"
        assert {HOSTILE_OP, HOSTILE_CATEGORY} <= {c["op"] for c in shown.shown("ops")}
        kernels = {c["name"] for c in shown.shown("kernels")}
        assert "=1+1" in kernels
        assert any(name.startswith("\\x1b[31mred</script><img") for name in kernels)
        ticks = shown.page.eval_on_selector_all(
            "[data-chart] .ytick text", "all => all.map(tick => tick.textContent)"
        )
        assert any("GPU 0" in tick for tick in ticks)
        assert shown.page.locator("main img, main i, main script").count() == 0
        assert shown.said == []


def test_hover_texts_of_charts_are_text(opened, written):
    with opened(written(label="samples")) as shown:
        texts = shown.page.evaluate(
            """() => {
                const label = tables.get("labels").column("label");
                label.words[0] = "<b>x</b>&amp;<a href=y>z</a>";
                const host = document.querySelector("[data-chart='0']");
                drawChart(host, page.charts[0]);
                return [...host.querySelectorAll(".ytick text")].map(tick => tick.textContent); }"""
        )
        assert texts[0] == "<b>x</b>&amp;<a href=y>z</a>"


def test_a_warehouse(opened, written, samples):
    rows = query(samples, "SELECT label, count(*) AS n FROM traces GROUP BY label ORDER BY label")
    files = query(samples, "SELECT path FROM files WHERE status <> 'ok' ORDER BY path")
    with opened(written()) as shown:
        shown.page.keyboard.press("Tab")
        assert shown.page.evaluate("document.activeElement.className") == "skip"
        cells = shown.exact("labels")
        assert [(c["label"], c["traces"]) for c in cells] == [
            (r["label"], full(r["n"])) for r in rows
        ]
        assert [c["path"] for c in shown.exact("files")] == [f["path"] for f in files]
        assert files  # truncated.json.gz is partial
        assert shown.said == []


def test_trends_of_the_metric_that_is_chosen(opened, written, samples):
    rows = query(
        samples,
        "SELECT label, 1 - position AS x, value / 1e3 AS us FROM trends WHERE metric = 'total_ns'"
        " AND label IN (SELECT label FROM job_runs GROUP BY label HAVING count(*) > 1) ORDER BY x",
    )
    with opened(written()) as shown:
        shown.page.select_option(".choose select", "total_ns")
        name, x, y, title = shown.page.evaluate(
            """() => {
                const host = document.querySelector(".choose + [data-chart]");
                const [line] = host.data;
                return [line.name, line.x, line.y, host.layout.yaxis.title.text];
            }"""
        )
    assert name == f"{rows[0]['label']} · (all)"
    assert sorted(zip(x, y, strict=True)) == [
        (row["x"], pytest.approx(row["us"] / (1 if title == "µs" else 1e3))) for row in rows
    ]
    assert len(rows) > 1


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_is_wider_than_the_window(opened, written, size):
    with opened(written("training"), size) as shown:
        assert shown.overflow() <= 0
        wide = shown.page.evaluate(
            """() => [...document.querySelectorAll(".chart, .facts, .tools, h1, p")]
                .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"""
        )
        assert wide == []
        legends = shown.page.evaluate(
            """() => [...document.querySelectorAll("[data-chart]")].map(host => {
                const legend = host.querySelector(".legend");
                const plot = host.querySelector(".xy .plot, .cartesianlayer .bg, .nsewdrag");
                if (!legend || !plot) return 0;
                return legend.getBoundingClientRect().bottom - plot.getBoundingClientRect().top;
            })"""
        )
        assert max(legends) <= 8  # no legend lies over what is drawn
        assert shown.said == []


def test_dark_mode_and_print(opened, written):
    with opened(written("training"), dark=True) as shown:
        colours = "getComputedStyle(document.body).backgroundColor"
        assert shown.page.evaluate(colours) == "rgb(20, 23, 27)"
        texts = "document.querySelector('[data-chart]').layout.font.color"
        assert shown.page.evaluate(texts) == "#e6e9ed"
        shown.page.emulate_media(media="print")
        assert shown.page.evaluate(colours) == "rgb(255, 255, 255)"
        shown.page.wait_for_function(f"{texts} === '#000000'")
        assert not shown.page.is_visible("nav")
        shown.page.set_viewport_size({"width": 1047, "height": 720})  # A4, landscape, 1 cm margins
        shown.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert shown.overflow() <= 0
        assert shown.page.inner_text("[data-table=roofline] .count") == "10 rows"
        shown.page.emulate_media(media="screen")
        shown.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        width = shown.page.evaluate("document.querySelector('[data-chart]')._fullLayout.width")
        assert width == shown.page.evaluate("document.querySelector('[data-chart]').clientWidth")
        assert shown.said == []


def test_every_control_can_be_reached_with_the_keyboard(training):
    reached = training.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, .scroll, nav a")]
            .every(one => one.tabIndex >= 0)"""
    )
    assert reached
    training.page.locator("[data-table=roofline] th[data-column=op] button").focus()
    training.page.keyboard.press("Enter")
    names = [c["op"] for c in training.shown("roofline")]
    assert names == sorted(names)


def test_the_policy_stops_other_scripts(opened, written):
    with opened(written("training")) as shown:
        shown.page.evaluate(
            """() => { const script = document.createElement("script");
                script.textContent = "window.ran = true"; document.body.append(script); }"""
        )
        assert shown.page.evaluate("window.ran") is None
        assert re.search("Content Security Policy", " ".join(shown.said))


def test_a_report_of_a_large_trace_is_quick_and_small(shared_traces, tmp_path):
    """132,152 events: under 2 s of CPU, and under 3 MB plus the plotting library."""
    owlv2 = shared_traces / "h100" / "google_owlv2-large-patch14-ensemble__1016001.json.gz"
    tracehouse.analyze([owlv2], tmp_path / "out", workers=1)
    started = time.process_time()
    report.write(report.page_of(tmp_path / "out", trace="google"), "html", tmp_path / "r.html")
    assert time.process_time() - started < 2  # 0.3 s on the machine it was written on
    library = len(get_plotlyjs().encode())
    assert (tmp_path / "r.html").stat().st_size - library < 3_000_000  # 0.18 MB


def test_real_traces_open_without_errors(shared_traces, opened, tmp_path):
    """One of each folder, and all together; the folders differ in what a trace has."""
    out = tmp_path / "out"
    tracehouse.analyze([shared_traces], out, workers=1)
    path = tmp_path / "report.html"
    rows = query(out, "SELECT min(trace_id) AS trace_id FROM traces GROUP BY label, status")
    said = {}
    for trace in [None, *(row["trace_id"] for row in rows)]:
        report.write(report.page_of(out, trace=trace), "html", path)
        with opened(path, PHONE) as shown:
            said[trace] = [*shown.said, *(["too wide"] if shown.overflow() > 0 else [])]
    assert {trace: words for trace, words in said.items() if words} == {}
    assert len(said) > 12
