// View 6: tables of the output, their sizes, and the SQL that opens them.

import { h, meter, table, text } from "./dom.js";
import { bytes, span, whole } from "./numbers.js";
import { fault, load, view } from "./page.js";

export class Files {
  constructor() {
    this.fault = fault();
    this.out = h("p", { class: "muted" });
    this.table = table("Tables of the output", [
      { name: "table", make: (t) => t.table },
      { name: "files", number: true, make: (t) => whole(t.files) },
      { name: "rows", number: true, make: (t) => whole(t.rows) },
      { name: "size", number: true, make: (t) => bytes(t.bytes) },
      { name: "last file closed", number: true, make: (t) => closedAt(t.last_close) },
    ]);
    this.disk = meter("disk in use");
    this.diskText = h("span", { class: "muted" });
    this.sql = h("pre", { role: "region", tabIndex: 0, id: "sql", "aria-label": "SQL that opens the tables" });
    this.copy = h("button", { type: "button", id: "copy", onclick: () => this.copied() }, "Copy");
    this.element = view(
      "files",
      "Files",
      this.fault,
      this.out,
      this.table.element,
      h("p", { class: "disk" }, this.disk.element, this.diskText),
      h(
        "section",
        { class: "panel code" },
        h("div", { class: "head" }, h("h3", {}, "Open them in DuckDB"), this.copy),
        this.sql,
      ),
    );
  }

  show() {
    this.update();
    this.timer = setInterval(() => document.hidden || this.update(), 5000);
  }

  hide() {
    clearInterval(this.timer);
  }

  update() {
    return load("api/files", this.fault, ({ out, tables, sql, disk }) => {
      text(this.out, out ?? "");
      this.table.update(tables ?? []);
      if (this.sql.textContent !== (sql ?? "")) this.sql.textContent = sql ?? "";
      this.diskText.parentElement.hidden = !disk?.total;
      if (!disk?.total) return;
      this.disk.update(1 - disk.free / disk.total);
      text(this.diskText, bytes(disk.free) + " of " + bytes(disk.total) + " free");
    });
  }

  async copied() {
    const sql = this.sql.textContent;
    try {
      await navigator.clipboard.writeText(sql);
    } catch {
      // no permission, or no secure origin: select it, and copy the selection
      getSelection().selectAllChildren(this.sql);
      if (!document.execCommand("copy")) {
        this.told("Selected: copy it by keyboard");
        return;
      }
      getSelection().removeAllRanges();
    }
    this.told("Copied");
  }

  told(message) {
    text(this.copy, message);
    clearTimeout(this.reset);
    this.reset = setTimeout(() => text(this.copy, "Copy"), 2000);
  }
}

// closedAt reads a time in seconds, in nanoseconds or as text of RFC 3339.
function closedAt(value) {
  if (!value) return "–";
  const at = typeof value === "number" ? new Date(value > 1e14 ? value / 1e6 : value * 1000) : new Date(value);
  return Number.isNaN(at.getTime()) || at.getTime() <= 0 ? "–" : span(Math.max(0, (Date.now() - at) / 1000)) + " ago";
}
