// The controls below the picture: pause, step, the last 64 frames, follow, camera, exact.

import { h, rows, text } from "./dom.js";
import { length } from "./reel.js";

export class Transport {
  // live has what the controls do: pause, step, go, choose, swap, exact.
  constructor(live) {
    const button = (id, content, label, key, act) =>
      h(
        "button",
        { type: "button", id, "aria-label": label, title: label + " (" + key + ")", onclick: act },
        content,
      );
    this.live = live;
    this.back = button("back", "◂", "One frame back", "left arrow", () => live.step(-1));
    this.pause = button("pause", "❚❚", "Pause", "space", () => live.pause());
    this.forth = button("forth", "▸", "One frame forward", "right arrow", () => live.step(1));
    this.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
    this.slider = h("input", { type: "range", id: "reel", min: 0, max: 0, value: 0 });
    this.slider.setAttribute("aria-label", "Frame of the last 64");
    this.slider.addEventListener("input", () => live.go(Number(this.slider.value)));
    const follow = () => live.choose("follow", !live.page.state.follow);
    this.follow = button("follow", "Follow", "Follow the frame", "f", follow);
    this.mode = button("mode", "", "From above or in perspective", "t", () => live.swap());
    this.exact = button("exact", "Exact", "Exact: all points of the newest frame", "e", () => live.exact());
    const time = h("div", { class: "time" }, this.ticks, this.slider);
    this.element = h("div", { class: "transport", role: "group", "aria-label": "Frames" });
    this.element.append(this.back, this.pause, this.forth, time, this.follow, this.mode, this.exact);
  }

  // buttons brings the buttons up to date.
  buttons() {
    const { paused, current, stage, page } = this.live;
    text(this.pause, paused ? "▶" : "❚❚");
    this.pause.setAttribute("aria-label", paused ? "Play" : "Pause");
    this.follow.setAttribute("aria-pressed", page.state.follow);
    text(this.mode, stage.mode === "top" ? "Above" : "Perspective");
    this.mode.setAttribute("aria-label", "Camera: " + (stage.mode === "top" ? "from above" : "in perspective"));
    this.mode.disabled = !!current && !current.header.space;
    this.update();
  }

  // update shows which frames are kept, which of them are committed, and which one is seen.
  update() {
    const { scenes, at, current } = this.live;
    const free = length - scenes.length;
    const ticks = rows(this.ticks, length, () => h("i"));
    for (let i = 0; i < length; i++) {
      const scene = scenes[i - free];
      const state = scene && (this.live.committed(scene) ? "done" : "open");
      const mark = (scene && i - free === at ? "now " : "") + (state ?? "");
      if (ticks[i].className !== mark) ticks[i].className = mark;
    }
    const last = Math.max(0, scenes.length - 1);
    if (Number(this.slider.max) !== last) this.slider.max = last;
    if (Number(this.slider.value) !== at) this.slider.value = Math.max(0, at);
    const value = current ? "frame " + current.header.frame + ", " + (last - at) + " before the newest" : "none";
    this.slider.setAttribute("aria-valuetext", value);
    this.back.disabled = at <= 0;
    this.forth.disabled = at >= last;
  }
}
