// The page: views, keys, colours, and the connection whose messages it hands out.

import { say, text } from "./dom.js";
import { Feed } from "./feed.js";
import { Files } from "./files.js";
import { help } from "./help.js";
import { press as pressLive } from "./keys.js";
import { Lag } from "./lag.js";
import { read, write } from "./link.js";
import { Live } from "./live.js";
import { digits, ms, short, whole } from "./numbers.js";
import { Process } from "./process.js";
import { Rejects } from "./rejects.js";
import { Throughput } from "./throughput.js";
import { Way } from "./way.js";

const element = (id) => document.getElementById(id);
const names = ["live", "throughput", "lag", "way", "rejects", "files", "process"];
const page = { state: read(), save: () => write(page.state), fault };

// ---------------------------------------------------------------- colours

const themes = ["auto", "dark", "light"];
let theme = themes.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto";

function paint() {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  text(element("theme"), theme);
  element("theme").setAttribute("aria-label", "Colours: " + theme);
  for (const view of Object.values(views)) view.recolour?.();
  views.live?.stage.recolour();
  views.live?.pane.matrix();
}

function nextTheme() {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  localStorage.setItem("theme", theme);
  paint();
}

// ---------------------------------------------------------------- views

const views = {};
const makers = { throughput: Throughput, lag: Lag, way: Way, rejects: Rejects, files: Files, process: Process };
let shown, last;

function open(name, focus) {
  page.state.view = name;
  page.save();
  for (const tab of document.querySelectorAll(".tabs a")) {
    if (tab.dataset.view === name) {
      tab.setAttribute("aria-current", "page");
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else tab.removeAttribute("aria-current");
  }
  const next = (views[name] ??= new makers[name]());
  if (shown === next) return;
  shown?.hide?.();
  shown = next;
  element("main").replaceChildren(next.element);
  document.body.dataset.view = name;
  document.title = (name === "live" ? "" : name + " · ") + "entropipe";
  if (last && name !== "live") next.state?.(last);
  next.show?.();
  if (focus) say(name);
}

// ---------------------------------------------------------------- the connection

let link = { state: "connecting" },
  stopped = 0;

page.feed = new Feed({
  link(now) {
    if (now.state === "open" && link.state !== "open" && now.opened > 1) say("Connected again");
    if (now.state === "waiting" && link.state === "open") {
      stopped = Date.now();
      say("Connection lost. The page keeps the last picture.");
    }
    link = now;
    tellLink();
  },
  hello({ epoch, version }) {
    document.body.dataset.version = version ?? "";
    views.live.connected(epoch);
  },
  streams({ streams }) {
    views.live.setStreams(streams ?? []);
  },
  state({ state }) {
    setState(state);
  },
  durable({ ends }) {
    views.live.setEnds(ends ?? []);
  },
  error({ message }) {
    fault(message);
  },
  scene(buffer) {
    views.live.receive(buffer);
  },
});

function tellLink() {
  const stale = link.state !== "open" && link.state !== "connecting" && link.state !== "asleep";
  document.body.dataset.link = link.state;
  document.body.classList.toggle("stale", stale && link.state !== "numbers");
  element("link").dataset.state = link.state;
  text(
    element("link-text"),
    { open: "live", waiting: "reconnecting", denied: "no token", numbers: "numbers only", asleep: "asleep" }[
      link.state
    ] ?? link.state,
  );
  element("notice").hidden = !stale;
  if (!stale) return;
  const seconds = Math.max(0, Math.ceil(((link.until ?? 0) - Date.now()) / 1000));
  const since = stopped ? " What you see is of " + new Date(stopped).toLocaleTimeString("en-GB") + "." : "";
  text(
    element("notice-text"),
    link.state === "denied"
      ? "The process wants its token: open the page by the address that was printed, with the token in it."
      : link.state === "numbers"
        ? "No WebSocket passes here: numbers arrive, pictures do not."
        : "Connection lost; " + (seconds ? "next try in " + seconds + " s." : "trying now.") + since,
  );
}

setInterval(() => {
  if (link.state === "waiting" && !document.hidden) tellLink();
}, 500);

let faults = 0;
function fault(message) {
  document.body.dataset.faults = ++faults;
  say(message);
}

function setState(state) {
  last = state;
  const { rates, totals, latency, lag } = state;
  const vital = (name, value) => text(document.querySelector("[data-vital=" + name + "]"), value);
  vital("frames", short(rates?.frames));
  vital("points", short(rates?.points));
  vital("bytes_in", digits(rates?.bytes_in / 1e6));
  vital("tokens", short(rates?.tokens));
  vital("p95", ms(latency?.p95_ms ?? NaN));
  vital("lag", lag?.verdict || "–");
  vital("rejects", whole(totals?.rejects));
  element("vitals").dataset.rejects = totals?.rejects > 0 ? "some" : "none";
  element("vitals").dataset.ready = state.ready ? "yes" : "no";
  views.live.setState(state);
  views.throughput?.state(state);
  if (shown !== views.live && shown !== views.throughput) shown?.state?.(state);
}

// ---------------------------------------------------------------- keys

let dialog;
function toggleHelp() {
  dialog ??= help();
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

// A key of the page is none of a field: there it is text, or moves a choice.
function inField(target, key) {
  if (target.closest("dialog[open]")) return key !== "?";
  if (target.matches("textarea, input[type=search], select")) return true;
  if (target.matches("input[type=range]")) return key.startsWith("Arrow");
  if (target.matches("button, a, summary, input")) return key === " " || key === "Enter";
  return target.matches("pre, .scroll, .words") && key.startsWith("Arrow");
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || inField(event.target, event.key)) return;
  const number = "1234567".indexOf(event.key);
  if (event.key === "?") toggleHelp();
  else if (event.key === "x") nextTheme();
  else if (event.key === "r") page.feed.retry();
  else if (number >= 0 && event.key.length === 1) open(names[number], true);
  else if (shown !== views.live || !pressLive(views.live, event)) return;
  event.preventDefault();
}

// ---------------------------------------------------------------- start

function start() {
  if (views.live) return;
  views.live = new Live(page);
  paint();
  element("theme").addEventListener("click", nextTheme);
  element("help-open").addEventListener("click", toggleHelp);
  element("retry").addEventListener("click", () => page.feed.retry());
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", paint);
  addEventListener("hashchange", follow);
  addEventListener("keydown", press);
  open(page.state.view);
  page.feed.start();
}

// follow goes where a link leads. A link among the views names the view alone, and changes
// nothing else.
function follow() {
  const given = read();
  if ([...new URLSearchParams(location.hash.slice(1)).keys()].join() !== "view") {
    page.state = given;
    views.live.restore();
  }
  open(given.view, true);
}

// The first picture of the page has no graphics: compiling their programs would hold it back.
// A page that nobody sees paints nothing, and starts all the same.
requestAnimationFrame(() => setTimeout(start));
setTimeout(start, 400);
