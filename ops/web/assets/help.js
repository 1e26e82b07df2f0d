// The overlay with the keys.

import { h } from "./dom.js";

const keys = [
  [
    "Everywhere",
    [
      ["1 … 7", "views"],
      ["x", "dark, light, as the system says"],
      ["r", "connect at once"],
      ["?", "this help"],
    ],
  ],
  [
    "Frames",
    [
      ["space", "pause and play"],
      ["← →", "step through the last 64 frames"],
      ["e", "all points of the newest frame"],
      ["[ ]", "stream before, next stream"],
    ],
  ],
  [
    "Camera",
    [
      ["t", "from above, in perspective"],
      ["f", "follow the frame"],
      ["0", "fit the frame"],
      ["+ −", "zoom; also wheel, two fingers"],
      ["⇧ ← → ↑ ↓", "turn; from above: move"],
      ["drag", "turn; with ⇧ or the right button: move"],
    ],
  ],
  [
    "Picture",
    [
      ["p h g m d", "points, hull, hull in space, maxima, mesh"],
      ["l", "points alone, and all again"],
      ["c", "colour by height, intensity, return"],
      ["v", "viridis, cividis"],
    ],
  ],
];

// help returns the dialog; its close gives the focus back to where it was.
export function help() {
  const close = h("button", { type: "button", "aria-label": "Close the help", onclick: () => dialog.close() }, "×");
  const dialog = h(
    "dialog",
    { class: "help", id: "help", "aria-labelledby": "help-title" },
    h("div", { class: "head" }, h("h2", { id: "help-title" }, "Keys"), close),
    h(
      "div",
      { class: "keys" },
      keys.map(([title, list]) =>
        h(
          "section",
          {},
          h("h3", {}, title),
          h(
            "dl",
            {},
            list.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what))),
          ),
        ),
      ),
    ),
    h(
      "p",
      { class: "muted" },
      "The page only reads. The address holds what you see: send it to show another person the same picture.",
    ),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  return dialog;
}
