// Views 3 to 7: lag, the way of a frame, rejects, files, the process. Each has an element,
// state(state) for the numbers of every second, and show() when it becomes visible.

import { h, meter, rows, table, text } from "./dom.js";
import { bytes, clock, digits, ms, short, span, whole } from "./numbers.js";

const view = (name, title, ...children) =>
  h(
    "section",
    { class: "view page", id: name, "aria-labelledby": name + "-title" },
    h("h2", { id: name + "-title" }, title),
    ...children,
  );
const panel = (title, ...children) => h("section", { class: "panel" }, h("h3", {}, title), ...children);

// load fetches JSON and passes it on; a fault is told in the given element.
async function load(path, told, use) {
  try {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
    use(await answer.json());
    told.hidden = true;
  } catch (error) {
    told.hidden = false;
    text(told, "Not read: " + error.message);
  }
}

const fault = () => h("p", { class: "empty", hidden: true, role: "status" });

// ---------------------------------------------------------------- 3: lag

export class Lag {
  constructor() {
    this.verdict = h("p", { class: "verdict", id: "verdict" }, "–");
    this.about = h("p", { class: "muted" }, "How far the committed offsets are behind the newest records.");
    this.worst = 1;
    this.table = table("Lag by partition", [
      { name: "topic", make: (p) => p.topic },
      { name: "partition", number: true, make: (p) => String(p.partition) },
      { name: "records behind", number: true, make: (p) => whole(p.records) },
      {
        name: "seconds behind",
        number: true,
        make: (p) => (p.seconds === null || p.seconds === undefined ? "–" : digits(p.seconds)),
      },
      { name: "", make: (p, cell) => this.bar(p, cell) },
      { name: "owner", make: (p) => p.owner || "–" },
      {
        name: "last commit",
        number: true,
        make: (p) =>
          p.commit_age_s === null || p.commit_age_s === undefined || p.commit_age_s < 0
            ? "–"
            : span(p.commit_age_s) + " ago",
      },
      { name: "", make: (p) => (p.held ? "held by " + p.held.replace(/^held by /, "") : "") },
    ]);
    this.element = view("lag", "Lag", this.verdict, this.about, this.table.element);
  }

  bar(partition, cell) {
    const bar = (cell.bar ??= meter("share of the largest lag of partition " + partition.partition));
    bar.update(partition.records / this.worst);
    return bar.element;
  }

  state({ lag }) {
    const partitions = lag?.partitions ?? [];
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

// ---------------------------------------------------------------- 4: the way of a frame

const stages = {
  fetch: "records come from Kafka",
  decode: "bytes become points",
  stage: "frames are pruned or thinned",
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
        h(
          "dl",
          {},
          h("div", {}, h("dt", {}, "time"), h("dd")),
          h("div", {}, h("dt", {}, "in use"), h("dd"), busy.element),
        ),
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
        text(queue.lastChild, whole(stage.queue.length) + " of " + whole(stage.queue.capacity));
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
    text(
      this.reason,
      bottleneck
        ? bottleneck + (reason ? ": " + reason.replace(bottleneck + ": ", "") : "")
        : reason || "no stage limits the rate",
    );
    this.reason.dataset.level = bottleneck ? "middle" : "good";
    facts(this.process, [
      ["processors in use", digits(process?.cpu_cores)],
      ["resident memory", bytes(process?.rss_bytes)],
      ["heap", bytes(process?.heap_bytes)],
      ["goroutines", whole(process?.goroutines)],
      [
        "messages in memory",
        process?.memory ? bytes(process.memory.used) + " of " + bytes(process.memory.limit) : "–",
      ],
    ]);
  }
}

// facts fills a list of names and values.
function facts(list, all) {
  const cells = rows(list, all.length, () => h("div", {}, h("dt"), h("dd")));
  all.forEach(([name, value], i) => {
    text(cells[i].firstChild, name);
    text(cells[i].lastChild, value);
  });
}

// ---------------------------------------------------------------- 5: rejects

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
        h("div", {}, h("h4", {}, "As read"), h("pre", { tabIndex: 0, "aria-label": "Sample as read" })),
        h(
          "div",
          {},
          h("h4", {}, "Bytes"),
          h("pre", { class: "hex", tabIndex: 0, "aria-label": "Sample in hexadecimal digits" }),
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

// ---------------------------------------------------------------- 6: files

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
    this.sql = h("pre", { tabIndex: 0, id: "sql", "aria-label": "SQL that opens the tables" });
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

// ---------------------------------------------------------------- 7: the process

export class Process {
  constructor() {
    this.fault = fault();
    this.health = h("ul", { class: "health" });
    this.build = h("dl", { class: "facts wide" });
    this.peers = h("ul", { class: "peers" });
    this.search = h("input", {
      type: "search",
      placeholder: "filter",
      "aria-label": "Filter the configuration",
      oninput: () => this.filter(),
    });
    this.table = table("Configuration in effect", [
      { name: "key", make: (line) => line.key },
      { name: "value", make: (line) => line.value },
      { name: "from", make: (line) => line.source || "–" },
    ]);
    this.lines = [];
    this.element = view(
      "process",
      "Process",
      this.fault,
      h(
        "div",
        { class: "columns" },
        panel("Health", this.health),
        panel("Build", this.build),
        panel("Peers of this output", this.peers),
      ),
      h(
        "section",
        { class: "panel" },
        h("div", { class: "head" }, h("h3", {}, "Configuration in effect"), this.search),
        this.table.element,
      ),
      h(
        "p",
        { class: "muted links" },
        "Other programs read ",
        link("metrics", "/metrics"),
        ", ",
        link("healthz", "/healthz"),
        ", ",
        link("readyz", "/readyz"),
        ", ",
        link("version", "/version"),
        ", ",
        link("api/state", "/api/state"),
        ".",
      ),
    );
  }

  show() {
    return load("api/config", this.fault, ({ lines }) => {
      this.lines = lines ?? [];
      this.filter();
    });
  }

  filter() {
    const wanted = this.search.value.toLowerCase();
    this.table.update(this.lines.filter((line) => (line.key + " " + line.value).toLowerCase().includes(wanted)));
  }

  state(state) {
    const health = [{ what: "ready", ok: state.ready, reason: state.reason }, ...(state.health ?? [])];
    const items = rows(this.health, health.length, () =>
      h("li", {}, h("span", { class: "dot", "aria-hidden": "true" }), h("b"), h("span", { class: "muted" })),
    );
    health.forEach(({ what, ok, reason }, i) => {
      items[i].dataset.ok = ok ? "yes" : "no";
      text(items[i].children[1], what);
      text(items[i].children[2], (ok ? "yes" : "no") + (reason ? ": " + reason : ""));
    });
    const watchers = state.watchers ?? {};
    facts(this.build, [
      ["version", state.version ?? "–"],
      ["revision", (state.revision ?? "").slice(0, 12) || "–"],
      ["running for", span(state.uptime_s)],
      ["watched by", whole(watchers.pages ?? 0) + " pages, " + whole(watchers.foxglove ?? 0) + " Foxglove"],
    ]);
    const peers = state.peers ?? [];
    const links = rows(this.peers, Math.max(1, peers.length), () =>
      h("li", {}, h("a"), h("span", { class: "muted" })),
    );
    if (!peers.length) {
      text(links[0].lastChild, "none: this process alone writes the output");
      links[0].firstChild.hidden = true;
    }
    peers.forEach((peer, i) => {
      const [name, age] = links[i].children;
      name.hidden = false;
      text(name, peer.name);
      if (/^https?:/.test(peer.url ?? "")) name.href = peer.url;
      else name.removeAttribute("href");
      text(
        age,
        peer.last_commit_age_s === null || peer.last_commit_age_s === undefined
          ? ""
          : "last commit " + span(peer.last_commit_age_s) + " ago",
      );
    });
  }
}

const link = (href, name) => h("a", { href }, name);
