// View 1: the newest frame of a stream, and a token sequence beside it.

import { h, say, text } from "./dom.js";
import { Inspector } from "./inspector.js";
import { fromNs, ms, quantile } from "./numbers.js";
import { Reel } from "./reel.js";
import { decode, keyOf, streamOf } from "./scene.js";
import { Stage } from "./stage.js";
import { TokenPane } from "./tokens.js";
import { Transport } from "./transport.js";

const calm = 250; // milliseconds between two changes of the readout while frames arrive
const kept = 4; // streams whose frames are kept
const local = ["127.0.0.1", "localhost", "[::1]", "::1"].includes(location.hostname);

export class Live {
  // page has state, save() and feed.
  constructor(page) {
    this.page = page;
    this.streams = [];
    this.kinds = new Map();
    this.reels = new Map();
    this.ends = new Map();
    this.paused = false;
    this.at = -1;
    this.latencies = [];
    this.frames = 0;
    this.stage = new Stage({
      moved: (panned) => this.moved(panned),
      drawn: (scene, time) => this.drawn(scene, time),
    });
    this.inspector = new Inspector({
      stream: (key) => this.choose("stream", key),
      beside: (key) => this.choose("beside", key || "none"),
      layer: (name) => this.layer(name),
      colour: (name) => this.choose("colour", name),
      map: (name) => this.choose("map", name),
    });
    this.pane = new TokenPane();
    this.build();
    this.restore();
  }

  build() {
    this.transport = new Transport(this);
    this.mark = h("span", { class: "mark-open", id: "uncommitted", hidden: true }, "not yet committed");
    this.badge = h("span", { class: "badge", id: "badge" });
    this.stage.element.append(h("div", { class: "corner" }, this.badge, this.mark));
    this.element = h(
      "section",
      { class: "view live", id: "live", "aria-label": "Live" },
      h(
        "div",
        { class: "show" },
        h("div", { class: "pictures" }, this.stage.element, this.pane.element),
        this.transport.element,
      ),
      this.inspector.element,
    );
  }

  // restore takes the state of the page, as after a link was opened.
  restore() {
    const { state } = this.page;
    Object.assign(this.stage.look, { layers: state.layers, colour: state.colour, map: state.map });
    this.stage.follow = state.follow;
    this.stage.mode = state.mode || "space";
    if (state.cam) this.stage.hold(state.cam);
    this.refresh();
  }

  show() {
    this.pane.matrix();
    this.refresh();
  }

  hide() {
    this.page.feed.watch([], 1);
  }

  // ---------------------------------------------------------------- streams

  setStreams(list) {
    this.streams = list.map(keyOf);
    this.refresh();
  }

  // setState learns from the numbers which topics hold sequences and which the largest frames.
  setState(state) {
    this.sizes = new Map();
    for (const { topic, totals } of state.topics ?? []) {
      if (totals.frames > 0) this.sizes.set(topic, totals.points / totals.frames);
      else if (totals.tokens > 0 || totals.sequences > 0) this.kinds.set(topic, "tokens");
    }
    const skew = Date.now() - fromNs(String(state.time_ns));
    this.skew = local ? 0 : Math.min(this.skew ?? Infinity, skew);
    if (this.element.isConnected) this.refresh();
  }

  setEnds(ends) {
    for (const { topic, partition, end } of ends) this.ends.set(topic + "/" + partition, Number(end));
    if (this.element.isConnected) this.tell(false);
  }

  committed(scene) {
    const { stream, partition, offset } = scene.header;
    return Number(offset) < (this.ends.get(stream.topic + "/" + partition) ?? 0);
  }

  isText(key) {
    return (this.kinds.get(key) ?? this.kinds.get(streamOf(key).topic)) === "tokens";
  }

  // main is the stream of the picture: the chosen one, else that with the largest frames.
  get main() {
    const { state } = this.page;
    if (state.stream) return state.stream;
    const size = (key) => (this.isText(key) ? -1 : (this.sizes?.get(streamOf(key).topic) ?? 0));
    return this.streams.reduce((best, key) => (best === undefined || size(key) > size(best) ? key : best), undefined);
  }

  // beside is the stream of the pane: the chosen one, else the first one of tokens.
  get beside() {
    const { beside } = this.page.state,
      main = this.main;
    if (beside) return beside === "none" || beside === main ? undefined : beside;
    return this.isText(main ?? "/") ? undefined : this.streams.find((key) => key !== main && this.isText(key));
  }

  // refresh brings subscription and controls up to date.
  refresh() {
    const main = this.main,
      beside = this.beside,
      { state, feed } = this.page;
    const inText = !!main && this.isText(main);
    this.element.dataset.kind = inText ? "tokens" : beside ? "both" : "frame";
    this.inspector.choose(
      state,
      main,
      beside,
      this.streams.includes(main) || !main ? this.streams : [main, ...this.streams],
    );
    if (main !== this.shownMain) {
      this.shownMain = main;
      this.at = -1;
      this.paused = false;
      this.latencies.length = 0;
      this.present();
    }
    if (beside !== this.shownBeside) {
      this.shownBeside = beside;
      const newest = beside && this.reels.get(beside)?.newest;
      if (newest?.header.kind === "tokens") this.pane.show(newest, this.committed(newest));
      else if (!inText) this.pane.show(null);
    }
    this.buttons();
    if (!this.element.isConnected) return;
    const keys = [main, beside].filter(Boolean),
      news = keys.filter((key) => !this.asked?.has(key));
    feed.watch(keys.map(streamOf), state.hz);
    this.asked ??= new Set();
    for (const key of news) {
      this.asked.add(key);
      feed.ask("history", streamOf(key));
    }
  }

  // connected: a new connection sends the frames that were missed; a new process has others.
  connected(epoch) {
    if (this.epoch !== undefined && this.epoch !== epoch) {
      this.renewed = new Set(this.reels.keys());
      this.ends.clear();
    }
    this.epoch = epoch;
    this.asked = undefined;
    if (this.element.isConnected) this.refresh();
  }

  // ---------------------------------------------------------------- frames

  receive(buffer) {
    let scene;
    try {
      scene = decode(buffer);
    } catch (error) {
      this.page.fault(error.message);
      return;
    }
    const { key, header } = scene;
    if (header.kind === "tokens") this.kinds.set(key, "tokens");
    else this.kinds.delete(key);
    if (this.renewed?.delete(key)) {
      this.reels.get(key)?.clear();
      if (key === this.main) this.at = -1;
    }
    const reel = this.reel(key);
    if (header.kind === "exact") {
      const at = reel.addExact(scene);
      if (key === this.main && this.paused && (at === this.at || this.wanted)) {
        this.at = at;
        this.wanted = false;
        this.present();
      } else this.transport.update();
      return;
    }
    if (this.paused && key === this.main && !header.history) return;
    const shown = reel.get(this.at);
    if (!reel.add(scene)) return;
    if (key === this.main) {
      this.frames += header.history ? 0 : 1;
      if (this.paused) this.at = reel.scenes.findIndex((other) => other.id === shown?.id);
      else if (reel.newest === scene) {
        this.at = reel.scenes.length - 1;
        this.present();
        return;
      }
      this.at = this.paused ? this.at : reel.scenes.length - 1;
      this.transport.update();
    } else if (key === this.beside && reel.newest === scene && header.kind === "tokens")
      this.pane.show(scene, this.committed(scene));
  }

  // reel returns the frames of a stream, and forgets those of the stream not shown the longest.
  reel(key) {
    let reel = this.reels.get(key);
    if (!reel) {
      reel = new Reel();
      this.reels.set(key, reel);
      for (const other of this.reels.keys()) {
        if (this.reels.size <= kept) break;
        if (other === this.main || other === this.beside || other === key) continue;
        this.reels.delete(other);
        this.asked?.delete(other);
      }
    }
    return reel;
  }

  // scenes are the kept frames of the picture's stream, the oldest first.
  get scenes() {
    return (this.main && this.reels.get(this.main)?.scenes) ?? [];
  }

  get current() {
    return this.main && this.reels.get(this.main)?.get(this.at);
  }

  // present draws the current frame.
  present() {
    if (this.at < 0 && this.main) this.at = (this.reels.get(this.main)?.scenes.length ?? 0) - 1;
    const scene = this.current;
    if (scene?.header.kind === "tokens") {
      this.element.dataset.kind = "tokens";
      this.pane.show(scene, this.committed(scene));
      this.pageData(scene);
    } else if (scene) this.stage.show(scene);
    this.tell(this.paused);
  }

  drawn(scene, time) {
    const latency = time - scene.time - (this.skew ?? 0);
    if (scene.header.kind === "frame" && !scene.header.history && !this.paused) {
      this.latencies.push(latency);
      if (this.latencies.length > 300) this.latencies.shift();
    }
    this.pageData(scene);
  }

  // pageData puts what was drawn last where tests and other programs read it.
  pageData(scene) {
    const sorted = [...this.latencies].sort((a, b) => a - b),
      data = this.element.dataset;
    data.frame = scene.header.frame;
    data.shown = scene.header.kind;
    data.held = scene.header.held ?? scene.header.n_tokens;
    data.frames = this.frames;
    data.latencyN = sorted.length;
    data.latencyP50 = quantile(sorted, 0.5).toFixed(1);
    data.latencyP95 = quantile(sorted, 0.95).toFixed(1);
  }

  // tell brings the readout up to date, at once or soon.
  tell(now) {
    this.transport.update();
    if (!now && this.due) return;
    if (!now && performance.now() - (this.told ?? 0) < calm) {
      this.due = setTimeout(() => {
        this.due = 0;
        this.readout();
      }, calm);
      return;
    }
    this.readout();
  }

  readout() {
    this.told = performance.now();
    const scene = this.current,
      sorted = [...this.latencies].sort((a, b) => a - b),
      facts = [];
    if (scene) facts.push(["committed", this.committed(scene) ? "yes" : "not yet", "committed"]);
    if (sorted.length && !this.paused)
      facts.push([
        "capture to pixel",
        ms(Math.round(quantile(sorted, 0.5))) + ", p95 " + ms(Math.round(quantile(sorted, 0.95))),
        "latency",
      ]);
    const frame = scene && scene.header.kind !== "tokens" ? scene : null;
    this.inspector.tell(frame, facts);
    this.mark.hidden = !frame || this.committed(frame);
    const { picture } = this.stage,
      colour = this.page.state.colour;
    if (frame && colour === "height" && frame.header.space && picture.ground)
      this.inspector.range(...picture.ground.map((v) => v + frame.header.origin[2]));
    else if (frame?.intensity && colour === "intensity" && frame.header.intensity) {
      const [low, high] = frame.header.intensity;
      this.inspector.range(...picture.bright.map((v) => low + v * (high - low)));
    } else this.inspector.range(null);
    const { canvas } = this.stage;
    canvas.setAttribute(
      "aria-label",
      frame
        ? "Frame " + frame.header.frame + " of " + frame.key + ", " + frame.header.points + " points"
        : "No frame yet",
    );
    text(
      this.badge,
      !frame
        ? this.streams.length
          ? "waiting for a frame"
          : "waiting for the first stream"
        : this.paused
          ? frame.header.kind === "exact"
            ? "paused · exact"
            : "paused"
          : "",
    );
    this.badge.hidden = !this.badge.textContent;
  }

  // ---------------------------------------------------------------- what a person does

  pause() {
    this.paused = !this.paused;
    const reel = this.main && this.reels.get(this.main);
    if (this.paused) {
      this.wanted = true;
      if (reel) this.page.feed.ask("exact", streamOf(this.main));
    } else {
      reel?.forgetExact();
      this.at = (reel?.scenes.length ?? 0) - 1;
      if (this.main) this.page.feed.ask("history", streamOf(this.main));
    }
    this.present();
    this.buttons();
    say(this.paused ? "Paused" : "Playing");
  }

  step(by) {
    this.go(this.at + by);
  }

  go(at) {
    const reel = this.main && this.reels.get(this.main);
    if (!reel || at < 0 || at >= reel.scenes.length) return;
    if (!this.paused) this.pause();
    this.wanted = false; // the frame that was stepped to stays
    this.at = at;
    this.present();
    say("Frame " + this.current.header.frame + (this.committed(this.current) ? "" : ", not yet committed"));
  }

  // exact pauses and asks for the newest frame whole, whichever is shown.
  exact() {
    if (!this.main) return;
    this.wanted = true;
    if (!this.paused) this.pause();
    else this.page.feed.ask("exact", streamOf(this.main));
  }

  swap() {
    this.choose("mode", this.stage.mode === "top" ? "space" : "top");
  }

  layer(name) {
    const { layers } = this.page.state;
    if (!layers.delete(name)) layers.add(name);
    this.changed();
  }

  // bare hides all layers but the points, and shows them again.
  bare() {
    const { state } = this.page;
    const some = [...state.layers].some((name) => name !== "points");
    if (some) this.layersBefore = [...state.layers];
    const next = some ? ["points"] : (this.layersBefore ?? ["points", "hull", "hull3", "maxima", "mesh"]);
    state.layers.clear();
    for (const name of next) state.layers.add(name);
    this.changed();
  }

  choose(name, value) {
    this.page.state[name] = value;
    if (name === "mode") this.stage.mode = value;
    if (name === "follow") {
      this.stage.follow = value;
      if (value) this.stage.fit();
      this.page.state.cam = value ? "" : this.stage.camera.text();
    }
    this.changed();
  }

  cycle(name, values) {
    this.choose(name, values[(values.indexOf(this.page.state[name]) + 1) % values.length]);
  }

  // next shows the next stream of the list, or that before.
  next(by) {
    if (!this.streams.length) return;
    this.choose(
      "stream",
      this.streams[(this.streams.indexOf(this.main) + by + this.streams.length) % this.streams.length],
    );
  }

  moved(panned) {
    const { state } = this.page;
    if (panned) state.follow = this.stage.follow = false;
    state.cam = this.stage.camera.text();
    state.mode ||= this.stage.mode;
    this.buttons();
    this.page.save();
  }

  changed() {
    const { state } = this.page;
    Object.assign(this.stage.look, { colour: state.colour, map: state.map });
    this.stage.redraw();
    this.refresh();
    this.readout();
    this.page.save();
  }

  buttons() {
    this.element.dataset.paused = this.paused ? "yes" : "no";
    this.transport.buttons();
  }
}
