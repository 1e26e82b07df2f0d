// A token sequence as people read it: its text, what the model expects next, and which
// blocks of the text each part of it attends to.

import { h, rows, text } from "./dom.js";
import { whole } from "./numbers.js";

const most = 3000; // tokens in the text; the last ones count

export class TokenPane {
  constructor() {
    this.title = h("h3");
    this.about = h("p", { class: "muted" });
    this.words = h("p", { class: "words", tabIndex: 0, role: "region", "aria-label": "Text of the sequence" });
    this.next = h("ol", { class: "next", "aria-label": "Next tokens" });
    this.nextTitle = h("h4", {}, "Next");
    this.blocks = h("canvas", { class: "blocks", role: "img" });
    this.blocksText = h("span", { class: "muted" });
    this.mask = h(
      "figure",
      { class: "mask" },
      this.blocks,
      h("figcaption", {}, h("h4", {}, "Mask"), this.blocksText),
    );
    this.element = h(
      "section",
      { class: "tokens", id: "tokens", "aria-label": "Token sequence" },
      h("div", { class: "head" }, this.title, this.about),
      this.words,
      h("div", { class: "below" }, h("div", {}, this.nextTitle, this.next), this.mask),
    );
    this.show(null);
  }

  // show draws a scene of kind tokens; null empties the pane.
  show(scene, committed) {
    const header = scene?.header;
    this.element.dataset.empty = header ? "no" : "yes";
    if (!header) {
      text(this.title, "No sequence yet");
      text(this.about, "");
      this.words.replaceChildren();
      this.next.replaceChildren();
      this.mask.hidden = this.nextTitle.hidden = true;
      this.scene = null;
      return;
    }
    this.element.dataset.id = header.id ?? "";
    text(this.title, header.id || "offset " + header.offset);
    text(
      this.about,
      [header.model, header.task, whole(header.n_tokens) + " tokens", committed ? "" : "not yet committed"]
        .filter(Boolean)
        .join(" · "),
    );
    this.text(header);
    this.expected(header);
    this.scene = scene;
    this.matrix();
  }

  // text alternates the ground of tokens, so that their bounds are seen, and appends what the model generated.
  text(header) {
    const known = header.words ?? (header.ids ?? []).map((id) => id + " ");
    const from = Math.max(0, known.length - most),
      made = header.generated ? (header.next ?? []) : [];
    const words = [...known.slice(from), ...made.map((token) => token.word || "#" + token.id)],
      old = known.length - from;
    const letters = known.join("").length < 1.5 * known.length; // a ground for each second one would flicker
    const spans = rows(this.words, words.length, () => h("span"));
    words.forEach((word, i) => {
      text(spans[i], shown(word));
      spans[i].className = i >= old ? "made" : i % 2 && !letters ? "odd" : "";
    });
  }

  expected(header) {
    const next = header.generated ? [] : (header.next ?? []);
    this.nextTitle.hidden = !next.length;
    const top = Math.max(...next.map((token) => Math.exp(token.logprob)), 1e-9);
    const items = rows(this.next, next.length, () =>
      h(
        "li",
        {},
        h("code"),
        h("span", { class: "meter", "aria-hidden": "true" }, h("span")),
        h("span", { class: "number" }),
      ),
    );
    next.forEach((token, i) => {
      const share = Math.exp(token.logprob),
        [word, bar, percent] = items[i].children;
      text(
        word,
        shown(token.word || "#" + token.id).trim() ? visible(token.word || "#" + token.id) : visible(token.word),
      );
      bar.firstChild.style.width = ((100 * share) / top).toFixed(1) + "%";
      text(percent, (100 * share).toFixed(share < 0.1 ? 1 : 0) + " %");
    });
  }

  // matrix paints one pixel a block and lets the style sheet enlarge them. Outside of the page
  // an element has no style, and so no colours: whoever puts the pane into the page calls it again.
  matrix() {
    if (!this.scene || !this.blocks.isConnected) return;
    const size = this.scene.header.blocks,
      cells = this.scene.blocks;
    this.mask.hidden = !size || !cells?.length;
    if (this.mask.hidden) return;
    const { rows: down, cols: across } = size;
    if (this.blocks.width !== across || this.blocks.height !== down)
      [this.blocks.width, this.blocks.height] = [across, down];
    const pen = this.blocks.getContext("2d"),
      pixels = pen.createImageData(across, down),
      style = getComputedStyle(this.blocks);
    const [on, off] = [style.color, style.backgroundColor].map((colour) =>
      colour
        .match(/[\d.]+/g)
        .slice(0, 3)
        .map(Number),
    );
    let set = 0;
    for (let i = 0; i < down * across; i++) {
      if (cells[i]) set++;
      pixels.data.set([...(cells[i] ? on : off), 255], 4 * i);
    }
    pen.putImageData(pixels, 0, 0);
    const share = Math.round((100 * set) / (down * across));
    this.blocks.setAttribute("aria-label", "Mask of " + down + " by " + across + " blocks; " + share + " % are read");
    text(
      this.blocksText,
      down +
        " × " +
        across +
        " blocks" +
        (size.size ? " of " + size.size + " tokens" : "") +
        ", " +
        share +
        " % read",
    );
  }
}

// shown replaces what a browser cannot draw.
const shown = (word) => (word ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "·");

// visible shows blanks and ends of lines of a token that stands alone.
const visible = (word) =>
  shown(word ?? "")
    .replaceAll(" ", "␣")
    .replaceAll("\n", "⏎")
    .replaceAll("\t", "⇥") || "∅";
