"use strict";
// Tables: decoded columns, sorting, filtering, pages of rows. Every text is set as text.

const SCALES = {
  ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
  bytes: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
  flops: [[1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"], [1, "FLOP"]],
};
const PAGE_SIZES = [15, 50, 200];
const PRINTED_ROWS = 60;

/** Give a column a function `at` (row to value; null if unknown), scale, shown unit, decimals.
 *  A column of zeros takes the scale of the one of its unit before it. */
function prepare(column, place, columns) {
  const { data, words } = column;
  column.at = words ? (row) => (data[row] < 0 ? null : words[data[row]]) : (row) => data[row];
  column.isNumber = column.kind === "int" || column.kind === "float" || column.kind === "big";
  let most = 0;
  if (column.isNumber) {
    for (const value of data) if (value !== null) most = Math.max(most, Math.abs(Number(value)));
  }
  const scales = column.kind === "big" ? undefined : SCALES[column.unit];
  const fitting = scales && (scales.find(([size]) => most >= 10 * size) || scales.at(-1));
  [column.size, column.shownUnit] = fitting || [1, column.unitWords];
  const before = columns.slice(0, place).findLast((other) => other.unit === column.unit);
  if (most === 0 && before) ({ size: column.size, shownUnit: column.shownUnit } = before);
  const whole = column.kind !== "float" && column.size === 1;
  column.decimals = whole ? 0 : column.unit === "pct" ? 2 : most / column.size >= 1e4 ? 1 : 3;
  if (column.unit === "ns" && column.size === 1) column.decimals = 0;
  column.format = new Intl.NumberFormat("en-US", {
    minimumFractionDigits: column.decimals, maximumFractionDigits: column.decimals,
  });
  return column;
}

/** A number of a column rounded for people; one that would round to 0 says so. */
function rounded(column, value) {
  if (value === null) return "";
  if (column.kind === "big") return value;
  if (typeof value !== "number") return String(value);
  const scaled = value / column.size;
  const least = 10 ** -column.decimals;
  if (scaled !== 0 && Math.abs(scaled) < least / 2) {
    return `${scaled < 0 ? ">−" : "<"}${column.format.format(least)}`;
  }
  return column.format.format(scaled);
}

/** A value in full, with the unit that it is stored in. */
function exact(column, value) {
  if (value === null) return "";
  if (typeof value !== "number") return String(value);
  const digits = Number.isInteger(value) ? value.toLocaleString("en-US") : String(value);
  return column.unitWords ? `${digits} ${column.unitWords}` : digits;
}

function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Turn the words of a filter into a test of a row. */
function rowTest(columns, text) {
  const byName = new Map(columns.map((column) => [column.name, column]));
  const tests = text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const compared = /^([a-z_0-9]+)([<>:])(.+)$/i.exec(word);
    const column = compared && byName.get(compared[1].toLowerCase());
    if (column && compared[2] !== ":" && column.isNumber && !isNaN(compared[3])) {
      const limit = Number(compared[3]) * column.size;
      const above = compared[2] === ">";
      return (row) => {
        const value = column.at(row);
        return value !== null && (above ? Number(value) > limit : Number(value) < limit);
      };
    }
    const named = column && compared[2] === ":";
    const sought = (named ? compared[3] : word).toLowerCase();
    const searched = named ? [column] : columns.filter((c) => !c.isNumber || c.kind === "big");
    // Distinct words are compared once, not once a row.
    const hits = searched.map((c) => c.words && c.words.map((w) => w.toLowerCase().includes(sought)));
    return (row) => searched.some((c, i) => {
      if (hits[i]) return c.data[row] >= 0 && hits[i][c.data[row]];
      const value = c.at(row);
      return value !== null && String(value).toLowerCase().includes(sought);
    });
  });
  return (row) => tests.every((test) => test(row));
}

/** Order of rows by a column: unknown values last, equal ones as they stood. */
function sorted(rows, column, direction) {
  const sign = direction === "ascending" ? 1 : -1;
  const compare = column.kind === "big"
    ? (a, b) => { const [x, y] = [BigInt(a), BigInt(b)]; return x < y ? -1 : x > y ? 1 : 0; }
    : column.isNumber || column.kind === "bool"
      ? (a, b) => a - b
      : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...rows].sort((a, b) => {
    const [x, y] = [column.at(a), column.at(b)];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    return sign * compare(x, y) || a - b;
  });
}

class Grid {
  constructor(host, table) {
    Object.assign(this, { host, table, page: 0, size: PAGE_SIZES[0], sort: null, filter: "" });
    this.columns = table.columns;
    this.all = Array.from({ length: table.count }, (_, row) => row);
    this.rows = this.all;
    this.open = new Set();
    this.build();
    this.fill();
  }

  build() {
    const { table } = this;
    this.input = element("input", {
      type: "search", autocomplete: "off", spellcheck: false, placeholder: "words, or name>number",
      title: "Rows with all these words. Of one column: name:word, name>number, name<number. " +
        `Names: ${this.columns.map((c) => c.name).join(", ")}`,
    });
    this.input.addEventListener("input", () => {
      this.filter = this.input.value;
      this.page = 0;
      this.arrange();
    });
    this.counted = element("span", { className: "count", role: "status" });
    this.previous = element("button", { type: "button", ariaLabel: "Previous rows" }, "‹");
    this.next = element("button", { type: "button", ariaLabel: "Next rows" }, "›");
    this.previous.addEventListener("click", () => this.turn(-1));
    this.next.addEventListener("click", () => this.turn(1));
    const sizes = element("select", { ariaLabel: "Rows a page" },
      ...PAGE_SIZES.map((n) => element("option", { value: String(n) }, `${n} rows`)));
    sizes.addEventListener("change", () => {
      this.size = Number(sizes.value);
      this.page = 0;
      this.fill();
    });
    const tools = element("div", { className: "tools" });
    if (table.count > 8) {
      tools.append(element("label", { className: "filter" }, "Filter ", this.input));
    }
    tools.append(this.counted);
    if (table.count > PAGE_SIZES[0]) tools.append(this.previous, this.next, sizes);
    this.heads = this.columns.map((column, i) => this.head(column, i));
    this.body = element("tbody");
    const whole = element("table", {},
      element("thead", {}, element("tr", {}, ...this.heads)), this.body);
    const scroll = element("div", {
      className: "scroll", tabIndex: 0, role: "region", ariaLabel: table.title,
    }, whole);
    this.host.append(tools, scroll);
  }

  head(column, i) {
    const button = element("button", { type: "button", title: column.meaning }, column.head);
    if (column.shownUnit) {
      button.append(" ", element("span", { className: "unit" }, `[${column.shownUnit}]`));
    }
    button.addEventListener("click", () => this.sortBy(i));
    const kind = [column.isNumber ? "number" : "", i === 0 ? "first" : ""].join(" ").trim();
    return element("th", { scope: "col", className: kind, "data-column": column.name }, button);
  }

  /** Sort by a column: numbers begin with the largest; the third time as it was. */
  sortBy(i) {
    const ways = this.columns[i].isNumber
      ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const now = this.sort && this.sort.column === i ? ways.indexOf(this.sort.way) : -1;
    const way = ways[now + 1];
    this.sort = way ? { column: i, way } : null;
    this.heads.forEach((head, j) => {
      if (way && j === i) head.setAttribute("aria-sort", way);
      else head.removeAttribute("aria-sort");
    });
    this.page = 0;
    this.arrange();
  }

  turn(by) {
    this.page += by;
    this.fill();
  }

  arrange() {
    this.rows = this.all.filter(rowTest(this.columns, this.filter));
    if (this.sort) {
      this.rows = sorted(this.rows, this.columns[this.sort.column], this.sort.way);
    }
    this.fill();
  }

  fill(size = this.size) {
    const first = this.page * size;
    const last = Math.min(first + size, this.rows.length);
    this.body.replaceChildren();
    for (const row of this.rows.slice(first, last)) {
      this.body.append(this.row(row));
      if (this.open.has(row)) this.body.append(this.detail(row));
    }
    if (!this.rows.length) {
      const words = this.table.count ? "No row fits the filter." : "None.";
      this.body.append(element("tr", {},
        element("td", { className: "none", colSpan: this.columns.length }, words)));
    }
    const whole = this.rows.length === this.table.count ? "" : ` (${count(this.table.count)} in all)`;
    this.counted.textContent = last - first === this.rows.length
      ? `${count(this.rows.length)} ${this.rows.length === 1 ? "row" : "rows"}${whole}`
      : `${count(first + 1)}–${count(last)} of ${count(this.rows.length)} rows${whole}`;
    this.previous.disabled = first === 0;
    this.next.disabled = last >= this.rows.length;
  }

  row(row) {
    const made = element("tr", { "data-row": String(row) });
    this.columns.forEach((column, i) => made.append(this.cell(column, i, row)));
    return made;
  }

  cell(column, i, row) {
    const value = column.at(row);
    const made = element("td", { className: i === 0 ? "first" : "" });
    if (column.isNumber) {
      made.classList.add("number");
      made.textContent = rounded(column, value);
      made.title = exact(column, value);
      if (column.unit === "pct" && value !== null && /share|roofline|busy/.test(column.name)) {
        made.classList.add("share");
        made.style.setProperty("--w", `${Math.max(0, Math.min(100, value))}%`);
      }
      return made;
    }
    const text = value === null ? "" : column.kind === "bool" ? (value ? "yes" : "no") : value;
    const clip = element("div", { className: "clip", title: text.length > 30 ? text : "" });
    if (i === 0 && row < this.table.details.length) {
      const button = element("button", { type: "button", className: "link" }, text);
      button.setAttribute("aria-expanded", String(this.open.has(row)));
      button.addEventListener("click", () => this.toggle(row));
      clip.append(button);
    } else {
      clip.textContent = text;
    }
    made.append(clip);
    return made;
  }

  toggle(row) {
    if (this.open.has(row)) this.open.delete(row);
    else this.open.add(row);
    this.fill();
    const again = this.body.querySelector(`tr[data-row="${row}"] .link`);
    if (again) again.focus();
  }

  detail(row) {
    const inner = element("div", { className: "inner" });
    for (const block of this.table.details[row]) {
      inner.append(element("h4", {}, block.title));
      if (block.head.length) inner.append(element("div", { className: "wrap" }, small(block)));
      if (block.lines.length) inner.append(element("pre", {}, block.lines.join("\n")));
    }
    const cell = element("td", { colSpan: this.columns.length }, inner);
    return element("tr", { className: "detail" }, cell);
  }
}

function small(block) {
  const cells = (name, texts) => texts.map((text, i) =>
    element(name, { className: block.right[i] ? "number" : "" }, text));
  return element("table", {},
    element("thead", {}, element("tr", {}, ...cells("th", block.head))),
    element("tbody", {}, ...block.rows.map((row) => element("tr", {}, ...cells("td", row)))));
}

function count(number) {
  return number.toLocaleString("en-US");
}
