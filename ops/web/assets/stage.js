// The stage is the canvas with its camera: it draws the scene it is shown, when something
// changed, and turns pointers and keys into movements of the camera.

import { Camera } from "./camera.js";
import { h, text } from "./dom.js";
import { Picture, spacing } from "./gl.js";
import { digits } from "./numbers.js";
import { ofPage } from "./palette.js";
import { range } from "./scene.js";

const most = 2; // device pixels for one of the page: more cost time and show nothing

export class Stage {
  // moved is called when a person moved the camera, panned with true when its target moved;
  // drawn after a scene was drawn for the first time, with the time of completion.
  constructor({ moved, drawn }) {
    this.moved = moved;
    this.drawn = drawn;
    this.camera = new Camera();
    this.look = { layers: new Set(), colour: "height", map: "viridis", colours: ofPage(), ratio: 1 };
    this.follow = true;
    this.canvas = h("canvas", { id: "picture", tabIndex: 0, role: "img", "aria-label": "No frame yet" });
    this.scale = h("div", { class: "scale", "aria-hidden": "true" }, h("span"));
    this.missing = h(
      "p",
      { class: "empty", hidden: true },
      "This browser draws no WebGL 2, so there is no picture here. All numbers work.",
    );
    this.element = h("div", { class: "stage" }, this.canvas, this.scale, this.missing);
    this.picture = new Picture(this.canvas, () => this.redraw());
    this.missing.hidden = !!this.picture.gl;
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  // show makes scene the picture. Origin of the picture is the origin of the first scene of a
  // stream, so that 32-bit numbers hold the distances between frames.
  show(scene) {
    if (scene.key !== this.key) {
      this.key = scene.key;
      this.origin = scene.header.origin;
      this.box = null;
    } else if (scene.header.origin.some((v, k) => Math.abs(v - this.origin[k]) > 1e5))
      this.origin = scene.header.origin;
    this.camera.down = !!scene.header.drawing;
    if (!scene.header.space) this.camera.mode = "top";
    else if (this.wish && this.camera.mode !== this.wish) this.camera.mode = this.wish;
    this.scene = scene;
    this.picture.load(scene, this.origin);
    this.fresh = true;
    if (!this.box || this.follow) this.keep();
    this.redraw();
  }

  // keep fits the camera to the frame when it left the box that is fitted, or fills less than half
  // of it. Small changes move nothing.
  keep() {
    const box = this.extent();
    if (!box) return;
    const [low, high] = box;
    if (this.box) {
      const size = (b, k) => b[1][k] - b[0][k];
      const inside = [0, 1].every(
        (k) =>
          low[k] >= this.box[0][k] - 0.1 * size(this.box, k) && high[k] <= this.box[1][k] + 0.1 * size(this.box, k),
      );
      const large = Math.max(size(box, 0), size(box, 1)) > 0.5 * Math.max(size(this.box, 0), size(this.box, 1));
      if (inside && large) return;
    } else if (this.held) {
      // the camera came with the link
      this.held = false;
      this.box = box;
      return;
    }
    this.fit();
  }

  fit() {
    const box = this.extent();
    if (!box) return;
    this.box = box;
    this.camera.fit(...box, this.aspect());
    this.redraw();
  }

  // extent is the box of the frame: whole from above, of most points in perspective.
  extent() {
    const scene = this.scene,
      header = scene?.header;
    if (!header?.held) return null;
    const low = [...header.min],
      high = [...header.max];
    if (this.camera.mode === "space") {
      for (let k = 0; k < 3; k++) [low[k], high[k]] = range(scene, k, 0.025, 0.975);
    }
    return [low, high].map((corner) => corner.map((v, k) => v + header.origin[k]));
  }

  // mode is "top" or "space"; frames of the plane are seen from above whatever it is.
  set mode(mode) {
    this.wish = mode;
    const wanted = this.scene && !this.scene.header.space ? "top" : mode;
    if (wanted === this.camera.mode) return;
    this.camera.mode = wanted;
    if (this.scene && this.follow) this.fit();
    this.redraw();
  }

  get mode() {
    return this.camera.mode;
  }

  hold(text) {
    this.held = this.camera.read(text);
  }

  aspect() {
    return this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight);
  }

  recolour() {
    this.look.colours = ofPage();
    this.redraw();
  }

  redraw() {
    if (this.due || document.hidden) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      this.draw();
    });
  }

  draw() {
    const ratio = Math.min(devicePixelRatio || 1, most),
      width = Math.round(this.canvas.clientWidth * ratio),
      height = Math.round(this.canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (this.canvas.width !== width || this.canvas.height !== height)
      [this.canvas.width, this.canvas.height] = [width, height];
    // Points and lines keep their weight in a large picture.
    const weight = Math.min(2.5, Math.max(1, Math.min(this.canvas.clientWidth, this.canvas.clientHeight) / 900));
    this.look.ratio = ratio * weight;
    const scene = this.fresh ? this.scene : null;
    this.fresh = false;
    this.picture.draw(this.camera, this.look, scene && (() => this.drawn(scene, Date.now())));
    const step = spacing(this.camera.span / 6);
    this.scale.hidden = !this.scene || this.camera.mode !== "top";
    this.scale.style.width = ((step / this.camera.span) * this.canvas.clientHeight).toFixed(1) + "px";
    text(
      this.scale.firstChild,
      step >= 1000 ? String(step) : digits(step).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros)),
    );
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      canvas.classList.add("held");
    });
    canvas.addEventListener("pointermove", (event) => this.pointer(event));
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, (event) => {
        this.pointers.delete(event.pointerId);
        if (!this.pointers.size) canvas.classList.remove("held");
      });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = canvas.getBoundingClientRect(),
          pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
        this.zoom(
          Math.exp(Math.max(-1, Math.min(1, pixels * 0.0016))),
          ((event.clientX - box.left) / box.width) * 2 - 1,
          1 - ((event.clientY - box.top) / box.height) * 2,
        );
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", () => {
      this.fit();
      this.moved(false);
    });
  }

  // pointer: one finger or button turns (from above: moves) the picture, two fingers move and zoom it.
  pointer(event) {
    const at = this.pointers.get(event.pointerId);
    if (!at) return;
    const others = [...this.pointers.entries()].filter(([id]) => id !== event.pointerId);
    const dx = event.clientX - at.x,
      dy = event.clientY - at.y,
      height = this.canvas.clientHeight;
    if (others.length) {
      const other = others[0][1],
        before = Math.hypot(at.x - other.x, at.y - other.y),
        after = Math.hypot(event.clientX - other.x, event.clientY - other.y);
      this.camera.pan(dx / 2, dy / 2, height);
      if (before > 4 && after > 4) this.camera.zoom(before / after, 0, 0, this.aspect());
      this.moved(true);
    } else if (this.camera.mode === "top" || event.buttons === 2 || event.shiftKey) {
      this.camera.pan(dx, dy, height);
      this.moved(true);
    } else {
      this.camera.orbit(dx, dy);
      this.moved(false);
    }
    at.x = event.clientX;
    at.y = event.clientY;
    this.redraw();
  }

  zoom(factor, x = 0, y = 0) {
    this.camera.zoom(factor, x, y, this.aspect());
    this.moved(false);
    this.redraw();
  }

  // turn moves the camera by keys: orbit in perspective, pan from above.
  turn(dx, dy) {
    if (this.camera.mode === "top") {
      this.camera.pan(-dx, -dy, this.canvas.clientHeight);
      this.moved(true);
    } else {
      this.camera.orbit(dx, dy);
      this.moved(false);
    }
    this.redraw();
  }
}
