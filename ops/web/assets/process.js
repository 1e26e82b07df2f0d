// View 7: health, build, peers, and the configuration in effect.

import { h, point, rows, table, text } from "./dom.js";
import { span, whole } from "./numbers.js";
import { facts, fault, load, panel, view } from "./page.js";

export class Process {
  constructor() {
    this.fault = fault();
    this.health = h("ul", { class: "health" });
    this.build = h("dl", { class: "facts wide" });
    this.peers = h("ul", { class: "peers" });
    this.note = h("p", { class: "muted" });
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
        panel("Peers of this output", this.peers, this.note),
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
      text(links[0].lastChild, state.peers_note || "none: this process alone writes the output");
      links[0].firstChild.hidden = true;
    }
    peers.forEach((peer, i) => {
      const [name, about] = links[i].children;
      name.hidden = false;
      text(name, peer.name);
      point(name, peer.url);
      text(about, whole(peer.partitions ?? 0) + (peer.partitions === 1 ? " partition" : " partitions"));
    });
    text(this.note, peers.length ? (state.peers_note ?? "") : "");
  }
}

const link = (href, name) => h("a", { href }, name);
