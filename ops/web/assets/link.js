// The state of the page in the address: view, stream, layers, colour, camera. A link shows
// another person the same picture.

const defaults = {
  view: "live",
  stream: "",
  beside: "",
  layers: "points,hull,hull3,maxima,mesh",
  colour: "height",
  map: "viridis",
  mode: "",
  follow: "1",
  hz: "10", // frames a second; fewer for slow lines
  cam: "",
};
const views = ["live", "throughput", "lag", "way", "rejects", "files", "process"];
export const colours = ["height", "intensity", "return", "plain"];
export const layerNames = ["points", "hull", "hull3", "maxima", "mesh"];

// read returns the state that the address holds; what is wrong or absent has its default.
export function read() {
  const given = new URLSearchParams(location.hash.slice(1)),
    state = { ...defaults };
  for (const name of Object.keys(defaults)) if (given.has(name)) state[name] = given.get(name);
  if (!views.includes(state.view)) state.view = "live";
  if (!colours.includes(state.colour)) state.colour = "height";
  if (!["viridis", "cividis"].includes(state.map)) state.map = "viridis";
  if (!["", "top", "space"].includes(state.mode)) state.mode = "";
  state.layers = new Set(state.layers.split(",").filter((name) => layerNames.includes(name)));
  state.hz = Math.min(100, Math.max(0.1, Number(state.hz) || 10));
  state.follow = state.follow !== "0";
  return state;
}

let due = 0,
  wanted = null;

// write puts the state into the address, at most four times a second and without an entry
// in the history: browsers refuse more.
export function write(state) {
  wanted = state;
  if (due) return;
  due = setTimeout(() => {
    due = 0;
    const text = format(wanted);
    if (text !== location.hash) history.replaceState(null, "", location.pathname + location.search + text);
  }, 250);
}

export function format(state) {
  const parts = [];
  const put = (name, value) => {
    if (value !== defaults[name])
      parts.push(name + "=" + encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%2F", "/"));
  };
  parts.push("view=" + state.view);
  for (const name of ["stream", "beside", "colour", "map", "mode", "cam"]) put(name, state[name]);
  put("layers", layerNames.filter((name) => state.layers.has(name)).join(","));
  put("hz", String(state.hz));
  put("follow", state.follow ? "1" : "0");
  return "#" + parts.join("&");
}
