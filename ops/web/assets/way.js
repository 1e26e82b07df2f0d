// View 4: the way of a frame as a graph, with rates, times, queues and the bottleneck.

import { h, meter, rows, text } from "./dom.js";
import { bytes, digits, ms, part, short, whole } from "./numbers.js";
import { facts, panel, view } from "./page.js";

const stages = {
  fetch: "records come from Kafka",
  decode: "bytes become points",
  stage: "points are left out",
  operators: "hulls, maxima, meshes, models",
  batch: "rows become row groups",
  commit: "files and offsets become durable",
};

export class Way {
  constructor() {
    this.list = h("ol", { class: "way", "aria-label": "Stages in order" });
    this.reason = h("p", { class: "verdict", id: "bottleneck" }, "–");
    this.process = h("dl", { class: "facts wide" });
    this.element = view("way", "The way of a frame", this.reason, this.list, panel("Process", this.process));
  }

  card() {
    const queue = meter("queue before the stage"),
      busy = meter("time in use");
    const card = h(
      "li",
      {},
      h(
        "div",
        { class: "edge" },
        h("b"),
        h("span", { class: "muted" }, "/s"),
        h("div", { class: "queue" }, queue.element, h("small")),
      ),
      h(
        "div",
        { class: "stagecard" },
        h("h3"),
        h("p", { class: "muted" }),
        h("dl", {}, h("div", {}, h("dt", {}, "time"), h("dd")), h("div", {}, h("dt", {}, "in use"), h("dd"))),
        busy.element,
        h("span", { class: "tag" }, "bottleneck"),
      ),
    );
    Object.assign(card, { queue, busy });
    return card;
  }

  state({ way, bottleneck, bottleneck_reason: reason, process }) {
    const cards = rows(this.list, way?.length ?? 0, () => this.card());
    (way ?? []).forEach((stage, i) => {
      const card = cards[i],
        [rate, , queue] = card.firstChild.children,
        [title, about, facts] = card.lastChild.children;
      text(rate, short(stage.rate));
      queue.hidden = !stage.queue;
      if (stage.queue) {
        card.queue.update(stage.queue.length / Math.max(1, stage.queue.capacity));
        const { length, capacity } = stage.queue; // of a budget of memory, or of a number of records
        text(queue.lastChild, capacity >= 1e6 ? part(length, capacity) : whole(length) + " of " + whole(capacity));
      }
      text(title, stage.stage);
      text(about, stages[stage.stage] ?? "");
      const [time, use] = facts.querySelectorAll("dd");
      text(time, ms(stage.ms));
      text(use, Math.round(100 * (stage.busy ?? 0)) + " %");
      card.busy.update(stage.busy);
      const slow = stage.stage === bottleneck;
      card.classList.toggle("slow", slow);
      card.lastChild.lastChild.hidden = !slow;
    });
    text(this.reason, reason || (bottleneck ? bottleneck + " limits the rate" : "no stage limits the rate"));
    this.reason.dataset.level = bottleneck ? "middle" : "good";
    facts(this.process, [
      ["processors in use", digits(process?.cpu_cores)],
      ["resident memory", bytes(process?.rss_bytes)],
      ["heap", bytes(process?.heap_bytes)],
      ["goroutines", whole(process?.goroutines)],
      ["memory budget", process?.memory ? part(process.memory.used, process.memory.limit) : "–"],
    ]);
  }
}
