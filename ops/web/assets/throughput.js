// View 2: ten minutes of rates and latencies, from the ring of the process and then from the
// numbers of every second.

import { h, text } from "./dom.js";
import { digits, short } from "./numbers.js";

const seconds = 600;
const charts = [
  { title: "Frames", unit: "a second", lines: [["frames", "frames"]] },
  { title: "Points", unit: "a second", lines: [["points", "points"]] },
  {
    title: "Data",
    unit: "MB a second",
    lines: [
      ["bytes_in", "in"],
      ["bytes_out", "out"],
    ],
    scale: 1e-6,
  },
  { title: "Tokens", unit: "a second", lines: [["tokens", "tokens"]] },
  {
    title: "Latency",
    unit: "ms to the commit",
    lines: [
      ["p50_ms", "p50"],
      ["p95_ms", "p95"],
      ["p99_ms", "p99"],
    ],
  },
  {
    title: "Lag and rejects",
    unit: "s, and a second",
    lines: [
      ["lag_seconds", "lag"],
      ["rejects", "rejects"],
    ],
  },
];
const names = ["seconds", ...charts.flatMap((chart) => chart.lines.map(([name]) => name))];

// library loads uPlot, once.
let loading;
function library() {
  loading ??= new Promise((resolve, reject) => {
    const base = new URL("./", import.meta.url);
    document.head.append(h("link", { rel: "stylesheet", href: new URL("uPlot.css", base).href }));
    document.head.append(
      h("script", {
        src: new URL("uPlot.js", base).href,
        onload: () => resolve(window.uPlot),
        onerror: () => {
          loading = undefined;
          reject(new Error("uPlot.js could not be read"));
        },
      }),
    );
  });
  return loading;
}

export class Throughput {
  constructor() {
    this.ring = Object.fromEntries(names.map((name) => [name, []]));
    this.plots = [];
    this.fault = h("p", { class: "empty", hidden: true, role: "status" });
    this.cards = charts.map((chart) => {
      const now = h("b", { class: "now" }),
        box = h("div", { class: "plot" });
      const card = h(
        "section",
        { class: "panel chart", "aria-label": chart.title },
        h("div", { class: "head" }, h("h3", {}, chart.title), h("span", { class: "muted" }, chart.unit), now),
        box,
      );
      return Object.assign(card, { now, box });
    });
    this.element = h(
      "section",
      { class: "view page", id: "throughput", "aria-labelledby": "throughput-title" },
      h("h2", { id: "throughput-title" }, "Throughput", h("small", { class: "muted" }, " the last ten minutes")),
      this.fault,
      h("div", { class: "charts" }, this.cards),
    );
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  async show() {
    this.shown = true;
    try {
      const [answer] = await Promise.all([fetch("api/series?seconds=" + seconds, { cache: "no-store" }), library()]);
      if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
      const series = await answer.json();
      for (const name of names) this.ring[name] = (series[name] ?? []).slice(-seconds);
      this.fault.hidden = true;
    } catch (error) {
      this.fault.hidden = false;
      text(this.fault, "Not read: " + error.message);
      if (!window.uPlot) return;
    }
    if (!this.shown) return;
    this.make();
    this.update();
  }

  hide() {
    this.shown = false;
  }

  // state appends the numbers of a second.
  state({ time_ns: time, rates, latency, lag }) {
    const second = Math.floor(Number(BigInt(time) / 1000000000n)),
      ring = this.ring;
    if (second <= (ring.seconds.at(-1) ?? 0)) return;
    const values = {
      ...rates,
      p50_ms: latency?.p50_ms,
      p95_ms: latency?.p95_ms,
      p99_ms: latency?.p99_ms,
      lag_seconds: lag?.seconds,
      seconds: second,
    };
    for (const name of names) {
      ring[name].push(values[name] ?? null);
      if (ring[name].length > seconds) ring[name].shift();
    }
    if (this.shown && this.element.isConnected) this.update();
  }

  make() {
    if (this.plots.length) return;
    const colour = (name) => () =>
      getComputedStyle(document.documentElement)
        .getPropertyValue("--" + name)
        .trim();
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { stroke: colour("line"), width: 1, size: 4 },
      font: "11px system-ui, sans-serif",
    };
    this.plots = charts.map(
      (chart, i) =>
        new window.uPlot(
          {
            ...this.size(this.cards[i].box),
            legend: { show: chart.lines.length > 1, live: true },
            cursor: { sync: { key: "entropipe" }, drag: { x: false, y: false }, points: { size: 6 } },
            scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.12 : 1] } },
            axes: [
              {
                ...axis,
                space: 70,
                size: 28,
                values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB").slice(0, 5)),
              },
              {
                ...axis,
                size: 48,
                values: (_, ticks) => ticks.map((v) => (v === 0 ? "0" : short(v).replace(" ", ""))),
              },
            ],
            series: [
              { label: "at", value: (_, v) => (v ? new Date(v * 1000).toLocaleTimeString("en-GB") : "–") },
              ...chart.lines.map(([, label], k) => ({
                label,
                stroke: colour("line" + (k + 1)),
                width: 1.75,
                points: { show: false },
                spanGaps: false,
                fill: chart.lines.length === 1 ? colour("fill1") : undefined,
                value: (_, v) => digits(v),
              })),
            ],
          },
          [[], ...chart.lines.map(() => [])],
          this.cards[i].box,
        ),
    );
  }

  update() {
    charts.forEach((chart, i) => {
      const scale = chart.scale ?? 1,
        columns = chart.lines.map(([name]) =>
          scale === 1 ? this.ring[name] : this.ring[name].map((v) => v && v * scale),
        );
      const plot = this.plots[i];
      plot?.setData([this.ring.seconds, ...columns]);
      if (plot && !(plot.cursor.left >= 0)) plot.setLegend({ idx: this.ring.seconds.length - 1 });
      text(this.cards[i].now, columns.map((values) => short(values.at(-1))).join(" / "));
    });
  }

  size(box) {
    return {
      width: Math.max(160, box.clientWidth),
      height: Math.max(120, Math.min(260, Math.round(innerHeight / 4.6))),
    };
  }

  resize() {
    if (!this.shown || this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.plots.forEach((plot, i) => plot.setSize(this.size(this.cards[i].box)));
    });
  }

  recolour() {
    for (const plot of this.plots) plot.redraw(false, true);
  }
}
