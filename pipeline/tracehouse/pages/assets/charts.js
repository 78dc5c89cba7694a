"use strict";
// Charts. Names come from traces: Plotly reads a little markup in texts, so they are escaped.

const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
const LIMIT = 2000;
const PRINTED_WIDTH = 1000; // pixels; a landscape page has 1047 between margins of 1 cm
let printing = false;

function themed() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    fg: colour("fg"), muted: colour("muted"), grid: colour("grid"), idle: colour("idle"),
    bg: colour("bg"), raised: colour("raised"),
    series: Array.from({ length: 10 }, (_, i) => colour(`c${i}`)),
    narrow: window.matchMedia("(max-width: 40rem)").matches,
  };
}

function plain(text) {
  return String(text ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function shortened(text, length) {
  text = String(text ?? "");
  return plain(text.length > length ? `${text.slice(0, length - 1)}…` : text);
}

/** `name value unit` of a row, for a hover text. */
function said(column, row) {
  const value = column.at(row);
  if (value === null) return "";
  const text = column.isNumber
    ? `${rounded(column, value)} ${column.shownUnit}` : shortened(value, 90);
  return `${plain(column.head)}: ${text}`;
}

function values(column, rows) {
  return rows.map((row) => {
    const value = column.at(row);
    return value === null ? null : column.isNumber ? Number(value) / column.size : value;
  });
}

function firstRows(table, limit = LIMIT) {
  return Array.from({ length: Math.min(table.count, limit) }, (_, row) => row);
}

function axis(theme, title, more) {
  return {
    title: title ? { text: title, font: { size: 12 } } : undefined, automargin: true,
    gridcolor: theme.grid, zerolinecolor: theme.grid, linecolor: theme.grid, ...more,
  };
}

/** The common layout; `legend`: how many entries it has, for which a chart gets so much higher. */
function layout(theme, height, legend, more) {
  const rows = legend < 2 ? 0 : Math.ceil(legend / (theme.narrow ? 2 : 7));
  return {
    height: height + 20 * rows, margin: { l: 8, r: 12, t: 10 + 20 * rows, b: 8, pad: 4 },
    showlegend: legend > 1,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: theme.fg, size: 12, family: "system-ui, sans-serif" },
    hoverlabel: { bgcolor: theme.raised, bordercolor: theme.grid, align: "left",
      font: { color: theme.fg, size: 12 } },
    legend: { orientation: "h", traceorder: "normal", x: 0, y: 1, xanchor: "left", yanchor: "bottom", font: { size: 12 } },
    ...more,
  };
}

/** The scale that fits the largest value of several columns of one unit. */
function commonSize(columns) {
  return columns.reduce((a, b) => (b.size > a.size ? b : a));
}

function partColour(theme, part, i) {
  return part.idle ? theme.idle : theme.series[i % theme.series.length];
}

/** A stacked bar a row: options table, label, parts [{column, idle}], share: as percentages. */
function stacked(options, theme) {
  const table = tables.get(options.table);
  const rows = firstRows(table, 60);
  const label = table.column(options.label);
  const parts = options.parts.map((part) => table.column(part.column));
  const { size, shownUnit } = commonSize(parts);
  const data = parts.map((column, i) => ({
    type: "bar", orientation: "h", name: plain(column.head), y: rows,
    x: rows.map((row) => Number(column.at(row) ?? 0) / size),
    marker: { color: partColour(theme, options.parts[i], i) },
    text: rows.map((row) => `${shortened(label.at(row), 90)}<br>${said(column, row)}` +
      `<br>${exact(column, column.at(row))}`),
    textposition: "none", hovertemplate: "%{text}<extra></extra>",
  }));
  return { data, layout: layout(theme, 66 + 30 * rows.length, data.length, {
    barmode: "stack", barnorm: options.share ? "percent" : "",
    xaxis: axis(theme, options.share ? "%" : shownUnit, { rangemode: "tozero" }),
    yaxis: axis(theme, "", {
      tickvals: rows, autorange: "reversed", showgrid: false,
      ticktext: rows.map((row) => shortened(label.at(row), theme.narrow ? 14 : 34)),
    }),
  }) };
}

/** A horizontal bar a row, the first rows only: options table, label (with also), value, share. */
function bars(options, theme) {
  const table = tables.get(options.table);
  const rows = firstRows(table, 12);
  const [label, value, share] = ["label", "value", "share"].map((key) => table.column(options[key]));
  const also = (options.also || []).map((name) => table.column(name));
  const named = (row) => [label, ...also].map((column) => column.at(row)).filter(Boolean).join(" · ");
  return { data: [{
    type: "bar", orientation: "h", y: rows, x: values(value, rows),
    marker: { color: theme.series[0] },
    customdata: rows.map((row) => `${shortened(named(row), 90)}<br>${said(value, row)}` +
      (share === value ? "" : `<br>${said(share, row)}`)),
    text: rows.map((row) => (share.at(row) === null ? "" : `${rounded(share, share.at(row))} %`)),
    textposition: "auto", cliponaxis: false,
    hovertemplate: "%{customdata}<extra></extra>",
  }], layout: layout(theme, 70 + 24 * rows.length, 0, {
    margin: { l: 8, r: 48, t: 8, b: 8, pad: 4 },
    xaxis: axis(theme, `${value.head} [${value.shownUnit}]`, { rangemode: "tozero" }),
    yaxis: axis(theme, "", {
      tickvals: rows, autorange: "reversed", showgrid: false,
      ticktext: rows.map((row) => shortened(named(row), theme.narrow ? 16 : 44)),
    }),
  }) };
}

/** What lanes did over time, with spans and gaps above: options table, lane, from, until, parts,
 *  spans and gaps {table, from, until, group, hover, title}. */
function strip(options, theme) {
  const table = tables.get(options.table);
  const [lane, from, until] = ["lane", "from", "until"].map((key) => table.column(options[key]));
  const size = until.size;
  const lanes = [...new Set(firstRows(table, table.count).map((row) => lane.at(row)))];
  const above = [options.spans, options.gaps].filter((one) => one && tables.get(one.table).count);
  const rowsInAll = lanes.length + 0.45 * above.length;
  const data = [];
  const axes = {};
  let top = 1;
  const place = (share, name, title, more) => {
    const bottom = Math.max(0, top - share / rowsInAll);
    axes[`yaxis${name}`] = axis(theme, "", {
      domain: [bottom + 0.02, top], showgrid: false, zeroline: false, fixedrange: true,
      tickfont: { size: 12 }, ...more,
    });
    top = bottom;
  };
  above.forEach((one, i) => {
    const name = i ? String(i + 1) : "";
    place(0.45, name, one.title, { tickvals: [0], ticktext: [one.title], range: [-1, 1] });
    data.push(...segments(one, theme, size, `y${name}`));
  });
  lanes.forEach((title, i) => {
    const name = above.length + i ? String(above.length + i + 1) : "";
    const rows = firstRows(table, table.count).filter((row) => lane.at(row) === title);
    const width = Math.max(...rows.map((row) => until.at(row) - from.at(row)), 1);
    place(1, name, title, {
      range: [0, 1], tickvals: [0.5], ticktext: [shortened(title, 12)],
    });
    options.parts.forEach((part, j) => {
      const column = table.column(part.column);
      data.push({
        type: "scatter", mode: "lines", line: { width: 0, shape: "hv" }, stackgroup: `lane${i}`,
        name: plain(column.head), legendgroup: part.column, showlegend: i === 0,
        fillcolor: partColour(theme, part, j), yaxis: `y${name}`, xaxis: "x",
        x: rows.map((row) => from.at(row) / size),
        y: rows.map((row) => (column.at(row) ?? 0) / width),
        text: rows.map((row) => said(column, row)), hovertemplate: "%{text}<extra></extra>",
      });
    });
  });
  const end = Math.max(...firstRows(table, table.count).map((row) => until.at(row)));
  return { data, layout: layout(theme, 70 + 70 * lanes.length + 34 * above.length,
    data.filter((one) => one.showlegend !== false).length, {
    xaxis: axis(theme, `time from the first GPU activity [${until.shownUnit}]`, {
      range: [0, end / size], anchor: `y${above.length + lanes.length === 1 ? "" : above.length + lanes.length}`,
      showgrid: false,
    }),
    ...axes, hovermode: "x",
    hoverlabel: { bgcolor: theme.raised, bordercolor: theme.grid, align: "left",
      font: { color: theme.fg, size: 12 } },
  }) };
}

/** Rows as thick lines from start to end, a colour a group; neighbours of a group alternate. */
function segments(options, theme, size, yaxis) {
  const table = tables.get(options.table);
  const [from, until] = ["from", "until"].map((key) => table.column(options[key]));
  const group = options.group && table.column(options.group);
  const hover = options.hover.map((name) => table.column(name));
  const groups = new Map();
  for (const row of firstRows(table, table.count)) {
    const name = (group && group.at(row)) || options.title;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return [...groups].map(([name, rows], i) => ({
    type: "scatter", mode: "lines", name: plain(name), yaxis, xaxis: "x", connectgaps: false,
    showlegend: Boolean(group), line: { width: 12, color: theme.series[(options.group ? 5 : 7) + i] ?? theme.series[i % 10] },
    x: rows.flatMap((row) => [from.at(row) / size, until.at(row) / size, null]),
    y: rows.flatMap((_, j) => {
      const y = !group || rows.length === 1 ? 0 : j % 2 ? 0.3 : -0.3;
      return [y, y, null];
    }),
    text: rows.flatMap((row) => {
      const text = hover.map((column) => said(column, row)).filter(Boolean).join("<br>");
      return [text, text, null];
    }),
    hovertemplate: "%{text}<extra></extra>",
  }));
}

/** Points on logarithmic axes under lines: options table, x, y, size, group, hover,
 *  lines {table, group, x, y, ridge}. */
function roofline(options, theme) {
  const table = tables.get(options.table);
  const [x, y, size, group] = ["x", "y", "size", "group"].map((key) => table.column(options[key]));
  const hover = options.hover.map((name) => table.column(name));
  const rows = firstRows(table, table.count).filter((row) => x.at(row) > 0 && y.at(row) > 0)
    .slice(0, LIMIT);
  const most = Math.max(...rows.map((row) => size.at(row) ?? 0), 1);
  const groups = new Map();
  for (const row of rows) {
    const name = group.at(row) ?? "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const lines = tables.get(options.lines.table);
  const [spec, lx, ly, ridge] = ["group", "x", "y", "ridge"].map((k) => lines.column(options.lines[k]));
  const specs = new Map();
  for (const row of firstRows(lines, lines.count)) {
    if (!specs.has(spec.at(row))) specs.set(spec.at(row), []);
    specs.get(spec.at(row)).push(row);
  }
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const limits = [...specs].map(([name, at], i) => ({
    type: "scatter", mode: "lines", name: plain(name), x: at.map((row) => lx.at(row)),
    y: at.map((row) => ly.at(row)), line: { color: theme.muted, width: 1.5, dash: dashes[i % 6] },
    text: at.map((row) => `${plain(name)}<br>${said(ly, row)}<br>${said(ridge, row)}`),
    hovertemplate: "%{text}<extra></extra>",
  }));
  const points = [...groups].map(([name, at], i) => ({
    type: "scatter", mode: "markers", name: plain(name), x: at.map((row) => x.at(row)),
    y: at.map((row) => y.at(row)),
    marker: {
      color: theme.series[i % 10], symbol: i < 10 ? "circle" : "diamond", opacity: 0.75,
      size: at.map((row) => 5 + 30 * Math.sqrt((size.at(row) ?? 0) / most)),
      line: { width: 1, color: theme.bg },
    },
    text: at.map((row) => hover.map((column) => said(column, row)).filter(Boolean).join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
  }));
  const log = { type: "log", dtick: 1, exponentformat: "power" };
  return { data: [...limits, ...points], layout: layout(theme, theme.narrow ? 420 : 520, limits.length + points.length, {
    xaxis: axis(theme, "arithmetic intensity [FLOPs/byte]", log),
    yaxis: axis(theme, "achieved [TFLOPS/s]", log),
  }) };
}

/** Columns over a number: options table, x, ys [column], band {table, from, until, name, only}. */
function series(options, theme) {
  const table = tables.get(options.table);
  const rows = firstRows(table, table.count);
  const x = table.column(options.x);
  const ys = options.ys.map((name) => table.column(name));
  const { size, shownUnit } = commonSize(ys);
  const data = ys.map((column, i) => ({
    type: "scatter", mode: rows.length > 60 ? "lines" : "lines+markers", name: plain(column.head),
    x: rows.map((row) => x.at(row)), connectgaps: false,
    y: rows.map((row) => (column.at(row) === null ? null : column.at(row) / size)),
    line: { color: theme.series[i], width: 1.6 },
    text: rows.map((row) => `${plain(x.head)} ${x.at(row)}<br>${said(column, row)}`),
    hovertemplate: "%{text}<extra></extra>",
  }));
  const bands = options.band ? tables.get(options.band.table) : null;
  const shapes = [], annotations = [];
  for (const row of bands ? firstRows(bands, bands.count) : []) {
    if (!bands.column(options.band.only).at(row)) continue;
    const [from, until, name] = ["from", "until", "name"].map((k) => bands.column(options.band[k]).at(row));
    shapes.push({ type: "rect", yref: "paper", y0: 0, y1: 1, x0: from - 0.5, x1: until + 0.5,
      fillcolor: theme.series[3], opacity: 0.16, line: { width: 0 }, layer: "below" });
    annotations.push({ x: (from + until) / 2, y: 1 - 0.09 * (row % 3), yref: "paper",
      yanchor: "top", showarrow: false, text: `steady: ${plain(name)}`,
      font: { size: 11, color: theme.muted } });
  }
  return { data, layout: layout(theme, 320, data.length, {
    shapes, annotations, hovermode: "closest",
    xaxis: axis(theme, plain(x.head)),
    yaxis: axis(theme, options.title || shownUnit, { rangemode: "tozero" }),
  }) };
}

/** A value over a number, a line a group: options table, x, y, group, hover. */
function groups(options, theme) {
  const table = tables.get(options.table);
  const [x, y, group] = ["x", "y", "group"].map((key) => table.column(options[key]));
  const hover = options.hover.map((name) => table.column(name));
  const found = new Map();
  for (const row of firstRows(table, LIMIT)) {
    if (x.at(row) === null || y.at(row) === null) continue;
    if (!found.has(group.at(row))) found.set(group.at(row), []);
    found.get(group.at(row)).push(row);
  }
  const data = [...found].map(([name, rows], i) => ({
    type: "scatter", mode: "lines+markers", name: plain(name),
    x: values(x, rows), y: values(y, rows), line: { color: theme.series[i % 10], width: 1.4 },
    marker: { color: theme.series[i % 10], size: 7 },
    text: rows.map((row) => hover.map((column) => said(column, row)).filter(Boolean).join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
  }));
  const title = (column) => column.head + (column.shownUnit ? ` [${column.shownUnit}]` : "");
  return { data, layout: layout(theme, 320, Math.max(data.length, 2), {
    xaxis: axis(theme, title(x)),
    yaxis: axis(theme, title(y), { rangemode: "tozero" }),
  }) };
}

/** Values over runs, the newest at the right, a line a group, of what a select chooses: options
 *  table, x (1 is the newest), y, unit, group, choose, hover. */
function trend(options, theme, chosen) {
  const table = tables.get(options.table);
  const [x, y, unit, group, choose] = ["x", "y", "unit", "group", "choose"]
    .map((key) => table.column(options[key]));
  const hover = options.hover.map((name) => table.column(name));
  const rows = firstRows(table, table.count)
    .filter((row) => choose.at(row) === chosen && y.at(row) !== null);
  const most = Math.max(...rows.map((row) => Math.abs(y.at(row))), 0);
  const stored = rows.length ? unit.at(rows[0]) : "";
  const scales = SCALES[stored];
  const [size, words] = (scales && (scales.find(([s]) => most >= 10 * s) || scales.at(-1))) ||
    [1, stored === "pct" ? "%" : stored];
  const found = new Map();
  for (const row of rows) {
    if (!found.has(group.at(row))) found.set(group.at(row), []);
    found.get(group.at(row)).push(row);
  }
  const data = [...found].map(([name, at], i) => ({
    type: "scatter", mode: "lines+markers", name: shortened(name, 60),
    x: at.map((row) => 1 - x.at(row)), y: at.map((row) => y.at(row) / size),
    line: { color: theme.series[i % 10], width: 1.4 }, marker: { size: 6 },
    text: at.map((row) => [
      ...hover.map((column) => said(column, row)),
      `${plain(chosen)}: ${(y.at(row) / size).toLocaleString("en-US", { maximumFractionDigits: 3 })}` +
        ` ${plain(words)}`,
    ].filter(Boolean).join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
  }));
  return { data, layout: layout(theme, 360, Math.max(data.length, 2), {
    hovermode: "closest",
    xaxis: axis(theme, "run, 0 is the newest"), yaxis: axis(theme, words),
  }) };
}

const KINDS = { stacked, bars, strip, roofline, series, groups, trend };

/** Draw a chart into its element; again after the colours changed. */
function drawChart(host, chart) {
  const { kind, options } = chart;
  if (options.choose && !chart.select) {
    const column = tables.get(options.table).column(options.choose);
    chart.select = element("select", {}, ...[...new Set(column.words)].map((word) =>
      element("option", { value: word }, word)));
    chart.select.addEventListener("change", () => drawChart(host, chart));
    host.before(element("label", { className: "choose" }, `${column.head} `, chart.select));
  }
  const onPaper = printing || window.matchMedia("print").matches;
  const { data, layout: laid } = KINDS[kind](options, themed(), chart.select && chart.select.value);
  laid.width = onPaper ? PRINTED_WIDTH : undefined;
  laid.autosize = !onPaper;
  Plotly.react(host, data, laid, CONFIG);
}
