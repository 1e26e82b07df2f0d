// View 3: how far each partition is behind, who owns it, and when it was committed.

import { h, meter, point, table, text } from "./dom.js";
import { digits, span, whole } from "./numbers.js";
import { view } from "./page.js";

// open says of how many frames a partition waits for chunks; empty: of none.
const open = (frames) => (frames ? whole(frames) + (frames === 1 ? " open chunked frame" : " open chunked frames") : "");

export class Lag {
  constructor() {
    this.verdict = h("p", { class: "verdict", id: "verdict" }, "–");
    this.about = h("p", { class: "muted" }, "How far the committed offsets are behind the newest records.");
    this.advice = h("p", { class: "muted", id: "advice", hidden: true });
    this.worst = 1;
    this.table = table("Lag by partition", [
      { name: "topic", make: (p) => p.topic },
      { name: "partition", number: true, make: (p) => String(p.partition) },
      {
        name: "records behind",
        number: true,
        make: (p) => (p.records === null || p.records === undefined ? "–" : (p.elsewhere ? "≈ " : "") + whole(p.records)),
      },
      {
        name: "seconds behind",
        number: true,
        make: (p) => (p.seconds === null || p.seconds === undefined ? "–" : digits(p.seconds)),
      },
      { name: "", make: (p, cell) => this.bar(p, cell) },
      { name: "owner", make: (p, cell) => this.owner(p, cell) },
      {
        name: "last commit",
        number: true,
        make: (p) =>
          p.commit_age_s === null || p.commit_age_s === undefined || p.commit_age_s < 0
            ? "–"
            : span(p.commit_age_s) + " ago",
      },
      { name: "", make: (p) => (p.held ? "held by " + p.held.replace(/^held by /, "") : open(p.open_frames)) },
    ]);
    this.element = view("lag", "Lag", this.verdict, this.about, this.table.element, this.advice);
  }

  owner(partition, cell) {
    if (!partition.url) return partition.owner || (partition.elsewhere ? "no process" : "–");
    const link = (cell.link ??= h("a"));
    text(link, partition.owner);
    point(link, partition.url);
    return link;
  }

  bar(partition, cell) {
    const bar = (cell.bar ??= meter("share of the largest lag of partition " + partition.partition));
    bar.update(partition.records / this.worst);
    return bar.element;
  }

  state({ lag }) {
    const others = (lag?.elsewhere ?? []).map((p) => ({ ...p, elsewhere: true }));
    const partitions = [...(lag?.partitions ?? []), ...others].sort(
      (a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition),
    );
    this.advice.hidden = !others.length;
    if (others.length) {
      text(
        this.advice,
        "≈ Partitions of other processes: behind the offset that the group told the brokers. That offset is advice; " +
          "the output decides, and may be ahead. " +
          (lag.elsewhere_note ?? ""),
      );
    }
    text(this.verdict, lag?.verdict || "no partitions yet");
    this.verdict.dataset.level = /keeping/.test(lag?.verdict ?? "keeping")
      ? "good"
      : /gaining/.test(lag.verdict)
        ? "middle"
        : "bad";
    this.worst = Math.max(1, ...partitions.map((p) => p.records ?? 0));
    this.table.update(partitions);
  }
}
