// What views 3 to 7 share. Each has an element, state(state) for the numbers of every second,
// and show() and hide() for when it becomes visible and is no longer.

import { h, rows, text } from "./dom.js";

// view makes the element of a view.
export const view = (name, title, ...children) =>
  h(
    "section",
    { class: "view page", id: name, "aria-labelledby": name + "-title" },
    h("h2", { id: name + "-title" }, title),
    ...children,
  );
// panel makes a box with a title.
export const panel = (title, ...children) => h("section", { class: "panel" }, h("h3", {}, title), ...children);

// load fetches JSON and passes it on; a fault is told in the given element.
export async function load(path, told, use) {
  try {
    const answer = await fetch(path, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
    use(await answer.json());
    told.hidden = true;
  } catch (error) {
    told.hidden = false;
    text(told, "Not read: " + error.message);
  }
}

// fault makes the place where load tells what went wrong.
export const fault = () => h("p", { class: "empty", hidden: true, role: "status" });

// facts fills a list of names and values.
export function facts(list, all) {
  const cells = rows(list, all.length, () => h("div", {}, h("dt"), h("dd")));
  all.forEach(([name, value], i) => {
    text(cells[i].firstChild, name);
    text(cells[i].lastChild, value);
  });
}
