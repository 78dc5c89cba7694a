"use strict";
// Start: decode the data, then fill in tables and charts.

const page = JSON.parse(document.getElementById("data").textContent);
const tables = new Map(Object.entries(page.tables));
for (const table of tables.values()) {
  table.columns.forEach(prepare);
  table.column = (name) => table.columns.find((column) => column.name === name);
}

let redraw = () => {};
const grids = [];
for (const host of document.querySelectorAll("[data-table]")) {
  grids.push(new Grid(host, tables.get(host.dataset.table)));
}
if (typeof Plotly !== "undefined") {
  const drawn = [...document.querySelectorAll("[data-chart]")].map((host) => {
    const chart = page.charts[Number(host.dataset.chart)];
    drawChart(host, chart);
    return () => drawChart(host, chart);
  });
  redraw = () => drawn.forEach((draw) => draw());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.matchMedia("(max-width: 40rem)").addEventListener("change", redraw);
  window.matchMedia("print").addEventListener("change", redraw);
}
const onPrint = (on) => {
  printing = on;
  grids.forEach((grid) => (on ? grid.fill(PRINTED_ROWS) : grid.fill()));
  redraw();
};
window.addEventListener("beforeprint", () => onPrint(true));
window.addEventListener("afterprint", () => onPrint(false));
document.documentElement.dataset.ready = "yes";
