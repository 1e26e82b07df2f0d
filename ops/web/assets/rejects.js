// View 5: rejects by reason, with a sample of each.

import { h, rows, text } from "./dom.js";
import { bytes, clock, whole } from "./numbers.js";
import { facts, fault, load, view } from "./page.js";

// dump is a hex dump: offset, 16 bytes, their characters.
export function dump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const pairs = hex.slice(at, at + 32).match(/../g) ?? [];
    const letters = pairs.map((pair) => {
      const code = parseInt(pair, 16);
      return code >= 32 && code < 127 ? String.fromCharCode(code) : "·";
    });
    lines.push(
      (at / 2).toString(16).padStart(4, "0") +
        "  " +
        pairs.slice(0, 8).join(" ").padEnd(23) +
        "  " +
        pairs.slice(8).join(" ").padEnd(23) +
        "  " +
        letters.join(""),
    );
  }
  return lines.join("\n");
}

export class Rejects {
  constructor() {
    this.fault = fault();
    this.none = h("p", { class: "empty" }, "No message was rejected since the start.");
    this.list = h("div", { class: "reasons" });
    this.element = view("rejects", "Rejects", this.fault, this.none, this.list);
  }

  show() {
    this.update();
  }

  state({ totals }) {
    if (totals?.rejects === this.count) return;
    this.count = totals?.rejects;
    this.update();
  }

  update() {
    return load("api/rejects", this.fault, ({ reasons }) => {
      const all = reasons ?? [];
      this.none.hidden = all.length > 0;
      const cards = rows(this.list, all.length, () => this.card());
      all.forEach((reason, i) => this.fill(cards[i], reason));
    });
  }

  card() {
    return h(
      "details",
      { class: "panel reason" },
      h("summary", {}, h("b"), h("span", { class: "muted" }), h("span", { class: "count" })),
      h("p", { class: "message" }),
      h("dl", { class: "facts wide" }),
      h(
        "div",
        { class: "bytes" },
        h(
          "div",
          {},
          h("h4", {}, "As read"),
          h("pre", { role: "region", tabIndex: 0, "aria-label": "Sample as read" }),
        ),
        h(
          "div",
          {},
          h("h4", {}, "Bytes"),
          h("pre", { role: "region", class: "hex", tabIndex: 0, "aria-label": "Sample in hexadecimal digits" }),
        ),
      ),
    );
  }

  fill(card, { stage, reason, count, sample }) {
    const [summary, message, list, both] = card.children,
      [name, where, number] = summary.children;
    if (card.parentElement.firstChild === card && card.dataset.touched !== "yes") {
      card.open = true;
      card.dataset.touched = "yes";
    }
    text(name, reason.replaceAll("_", " "));
    text(where, stage);
    text(number, whole(count));
    message.hidden = list.hidden = both.hidden = !sample;
    if (!sample) return;
    text(message, sample.message ?? "");
    facts(list, [
      ["topic", sample.topic],
      ["partition", String(sample.partition)],
      ["offset", String(sample.offset) + (sample.index ? ", part " + sample.index : "")],
      ["time", sample.time_ns ? clock(String(sample.time_ns)) : "–"],
      ["key", sample.key || "–"],
      ["size", bytes(sample.value_size)],
    ]);
    const [parsed, hex] = both.querySelectorAll("pre");
    text(parsed, (sample.parsed ?? []).join("\n") || "Nothing of it could be read.");
    const shown = (sample.value_hex ?? "").length / 2;
    text(
      hex,
      dump(sample.value_hex ?? "") +
        (shown < sample.value_size ? "\n… " + whole(sample.value_size - shown) + " more bytes" : ""),
    );
  }
}
