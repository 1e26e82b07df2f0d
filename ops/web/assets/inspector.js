// The inspector stands beside the picture: which stream, which layers, which colour, and
// what the frame's numbers are.

import { h, rows, text } from "./dom.js";
import { colours, layerNames } from "./link.js";
import { clock, digits, ms, short, whole } from "./numbers.js";
import { at, names, ofPage, part } from "./palette.js";

const labels = {
  points: ["Points", "p"],
  hull: ["Hull, on the ground", "h"],
  hull3: ["Hull in space", "g"],
  maxima: ["Maxima", "m"],
  mesh: ["Mesh", "d"],
};
const operators = {
  hull2d: "hull",
  hull3d: "hull in space",
  maxima2d: "maxima",
  maxima3d: "maxima in space",
  delaunay2d: "mesh",
};

// options fills a list of choices and keeps the chosen one.
export function options(select, values, chosen) {
  const made = values.map(([value, name]) => value + "\n" + name).join("\n");
  if (select.dataset.made !== made) {
    select.dataset.made = made;
    select.replaceChildren(...values.map(([value, name]) => h("option", { value }, name)));
  }
  if (select.value !== chosen) select.value = chosen;
}

export class Inspector {
  // act has the functions stream(key), beside(key), layer(name), colour(name), map(name).
  constructor(act) {
    this.stream = h("select", { id: "stream", onchange: () => act.stream(this.stream.value) });
    this.beside = h("select", { id: "beside", onchange: () => act.beside(this.beside.value) });
    this.colour = h("select", { id: "colour", onchange: () => act.colour(this.colour.value) });
    this.map = h("select", { id: "map", onchange: () => act.map(this.map.value) });
    this.layers = {};
    const list = layerNames.map((name) => {
      this.layers[name] = h("input", { type: "checkbox", id: "layer-" + name, onchange: () => act.layer(name) });
      return h(
        "label",
        { class: "layer", "data-layer": name },
        this.layers[name],
        h("span", { class: "swatch", "aria-hidden": "true" }),
        labels[name][0],
        h("kbd", { "aria-hidden": "true" }, labels[name][1]),
      );
    });
    this.ramp = h("canvas", {
      width: 128,
      height: 1,
      class: "ramp",
      role: "img",
      "aria-label": "Colours from low to high",
    });
    this.low = h("span");
    this.high = h("span");
    this.legend = h("div", { class: "legend" }, this.low, this.ramp, this.high);
    this.facts = h("dl", { class: "facts", id: "facts" });
    this.ops = h("tbody");
    this.element = h(
      "aside",
      { class: "inspector", "aria-label": "Inspector" },
      h("div", { class: "group" }, field("Stream", this.stream), field("Beside it", this.beside)),
      h("fieldset", { class: "group layers" }, h("legend", {}, "Layers"), list),
      h("div", { class: "group pair" }, field("Colour by", this.colour), field("Map", this.map), this.legend),
      h("div", { class: "group" }, h("h3", {}, "Frame"), this.facts),
      h(
        "div",
        { class: "group" },
        h(
          "table",
          { class: "ops" },
          h("caption", { class: "hidden" }, "Operators of this frame"),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["operator", "found", "time"].map((name, k) =>
                h("th", { scope: "col", class: k ? "number" : null }, name),
              ),
            ),
          ),
          this.ops,
        ),
      ),
    );
  }

  // choose shows the state of the page.
  choose(state, main, beside, streams) {
    const named = streams.map((key) => [key, key.replace(/\/$/, "")]);
    options(this.stream, named.length ? named : [["", "none yet"]], main ?? "");
    options(this.beside, [["", "nothing"], ...named.filter(([key]) => key !== main)], beside ?? "");
    options(
      this.colour,
      colours.map((name) => [name, name]),
      state.colour,
    );
    options(
      this.map,
      names.map((name) => [name, name]),
      state.map,
    );
    for (const name of layerNames) this.layers[name].checked = state.layers.has(name);
    const { light } = ofPage();
    if (this.painted !== state.map + light) {
      this.painted = state.map + light;
      const pen = this.ramp.getContext("2d"),
        pixels = pen.createImageData(128, 1);
      for (let i = 0; i < 128; i++) pixels.data.set([...at(state.map, part(i / 127, light)), 255], 4 * i);
      pen.putImageData(pixels, 0, 0);
    }
  }

  // range labels the ends of the map; null hides it.
  range(low, high) {
    this.legend.hidden = low === null;
    if (low === null) return;
    text(this.low, digits(low));
    text(this.high, digits(high));
  }

  // tell shows the numbers of a scene; facts beside it are a list of name, value, key.
  tell(scene, facts) {
    const all = scene ? [...ofHeader(scene.header), ...facts] : facts;
    const cells = rows(this.facts, all.length, () => h("div", {}, h("dt"), h("dd")));
    all.forEach(([name, value, key], i) => {
      text(cells[i].firstChild, name);
      text(cells[i].lastChild, value);
      if (cells[i].dataset.fact !== key) cells[i].dataset.fact = key;
    });
    const ops = Object.entries(scene?.header.ops ?? {});
    const lines = rows(this.ops, ops.length, () =>
      h("tr", {}, h("th", { scope: "row" }), h("td", { class: "number" }), h("td", { class: "number" })),
    );
    ops.forEach(([name, op], i) => {
      text(lines[i].children[0], operators[name] ?? name);
      text(lines[i].children[1], op.status === "ok" ? whole(op.n) : String(op.status).replaceAll("_", " "));
      text(lines[i].children[2], ms(op.ms));
    });
  }
}

const field = (name, input) => h("label", { class: "field" }, h("span", {}, name), input);

// ofHeader lists what is known of a frame.
function ofHeader(header) {
  const facts = [["frame", String(header.frame ?? "–"), "frame"]];
  if (header.drawing) facts.push(["drawing", header.drawing.label || header.drawing.id, "drawing"]);
  if (header.dataset || header.sensor)
    facts.push(["of", [header.dataset, header.sensor].filter(Boolean).join(", "), "of"]);
  facts.push(["captured", clock(header.captured_ns), "captured"]);
  facts.push([
    "partition, offset",
    header.partition + ", " + header.offset + (header.index ? " (" + header.index + ")" : ""),
    "offset",
  ]);
  facts.push(["points", whole(header.points), "points"]);
  if (header.held !== header.points) facts.push(["of them drawn", whole(header.held), "held"]);
  const hull = header.ops?.hull2d ?? header.ops?.hull3d;
  if (hull) facts.push(["hull vertices", whole(hull.n), "vertices"]);
  if (header.area !== undefined) facts.push(["area", short(header.area), "area"]);
  if (header.volume !== undefined) facts.push(["volume", short(header.volume), "volume"]);
  if (header.triangles) facts.push(["triangles", whole(header.triangles), "triangles"]);
  return facts;
}
