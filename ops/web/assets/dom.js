// Elements, made and changed without markup in texts: no value of a record can become HTML.

// h makes an element. Properties that begin with "on" are listeners; "class", "data-*",
// "aria-*" and "role" are attributes; the rest are properties.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class" || name === "role" || name === "for" || name.includes("-")) {
      element.setAttribute(name, value === true ? "" : value);
    } else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// text sets the text of an element if it differs, so that nothing is laid out in vain.
export function text(element, value) {
  const node = element.firstChild;
  if (node?.nodeType === Node.TEXT_NODE && !node.nextSibling) {
    if (node.data !== value) node.data = value;
  } else element.textContent = value;
}

// point makes a link lead to a page of a program; other addresses than http make it a text.
export function point(link, url) {
  if (!/^https?:\/\/[^/]/.test(url ?? "")) link.removeAttribute("href");
  else if (link.getAttribute("href") !== url) {
    link.href = url;
    link.rel = "noopener noreferrer";
  }
}

// rows makes list have n children, made by make(k) where one is missing.
export function rows(list, n, make) {
  while (list.children.length > n) list.lastElementChild.remove();
  while (list.children.length < n) list.append(make(list.children.length));
  return list.children;
}

// say tells those who do not see the page; a screen reader waits until it is idle.
export function say(message) {
  const element = document.getElementById("say");
  element.textContent = "";
  setTimeout(() => {
    element.textContent = message;
  }, 50);
}

// table makes a table with a caption; columns are {name, number, make}, of which make
// returns the content of a cell from a row. Its update keeps the elements that exist.
export function table(caption, columns) {
  const body = h("tbody");
  const element = h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((c) => h("th", { scope: "col", class: c.number ? "number" : null }, c.name)),
        ),
      ),
      body,
    ),
  );
  const update = (values) => {
    rows(body, values.length, () =>
      h(
        "tr",
        {},
        columns.map((c, k) => (k === 0 ? h("th", { scope: "row" }) : h("td", { class: c.number ? "number" : null }))),
      ),
    );
    values.forEach((value, i) =>
      columns.forEach((c, k) => {
        const cell = body.children[i].children[k],
          content = c.make(value, cell);
        if (content instanceof Node) {
          if (cell.firstChild !== content) cell.replaceChildren(content);
        } else if (content !== undefined) text(cell, content);
      }),
    );
  };
  return { element, update, body };
}

// meter is a bar from 0 to 1 with a label for those who do not see it.
export function meter(label) {
  const fill = h("span");
  const element = h(
    "span",
    { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" },
    fill,
  );
  const update = (share) => {
    const percent = Math.round(100 * Math.min(1, Math.max(0, share || 0)));
    fill.style.width = percent + "%";
    element.setAttribute("aria-valuenow", percent);
    element.dataset.level = share >= 0.9 ? "high" : share >= 0.6 ? "middle" : "low";
  };
  update(0);
  return { element, update };
}
