// What keys do in the live view; help.js explains them.

import { colours } from "./link.js";
import { names as maps } from "./palette.js";

const turns = { ArrowLeft: [30, 0], ArrowRight: [-30, 0], ArrowUp: [0, 30], ArrowDown: [0, -30] };

const acts = {
  " ": (live) => live.pause(),
  ArrowLeft: (live) => live.step(-1),
  ArrowRight: (live) => live.step(1),
  e: (live) => live.exact(),
  f: (live) => live.choose("follow", !live.page.state.follow),
  t: (live) => live.swap(),
  l: (live) => live.bare(),
  p: (live) => live.layer("points"),
  h: (live) => live.layer("hull"),
  g: (live) => live.layer("hull3"),
  m: (live) => live.layer("maxima"),
  d: (live) => live.layer("mesh"),
  c: (live) => live.cycle("colour", colours),
  v: (live) => live.cycle("map", maps),
  0: (live) => live.stage.fit(),
  "+": (live) => live.stage.zoom(0.8),
  "=": (live) => live.stage.zoom(0.8),
  "-": (live) => live.stage.zoom(1.25),
  "[": (live) => live.next(-1),
  "]": (live) => live.next(1),
};

// press acts on a key; it returns false for one that means nothing here.
export function press(live, event) {
  const turn = event.shiftKey && turns[event.key];
  if (turn) live.stage.turn(...turn);
  else if (Object.hasOwn(acts, event.key)) acts[event.key](live);
  else return false;
  return true;
}
