/** A table of nodes with sorting, pages and thumbnails. Text enters only as textContent. */

import { sortNodes } from "./nodes.js";

const ROWS = 20; // rows of a page

/** Make an element with text and attributes. */
export function element(tag, { text, className, ...attributes } = {}, children = []) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className !== undefined) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A bar that shows a probability; an SVG, because the page allows no inline style. */
export function probabilityBar(probability, color) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const part = (width, className) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [k, v] of Object.entries({ width, height: 8, rx: 2 })) rect.setAttribute(k, v);
    rect.setAttribute("class", className);
    svg.append(rect);
    return rect;
  };
  svg.setAttribute("viewBox", "0 0 100 8");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "bar");
  svg.setAttribute("aria-hidden", "true");
  part(100, "track");
  part(100 * probability, "fill").style.fill = color;
  return svg;
}

/**
 * Show nodes in a table with pages.
 *
 * parts: body, pager, count and headers, which are buttons with data-column
 * options: thumbnail(i) is a canvas or null; color(i) of the bar; onHover(i) and onPick(i)
 */
export function createTable(nodes, parts, { thumbnail, color, onHover, onPick }) {
  let indices = [], page = 0, column = "probability", descending = false;
  const [previous, next] = parts.pager.querySelectorAll("button");

  function row(i) {
    const [first, second] = nodes.top(i), picture = thumbnail(i);
    const name = element("button", { text: nodes.id(i), className: "plain", type: "button" });
    name.addEventListener("click", () => onPick(i));
    const cells = [
      element("td", { className: "left name" }, picture === null ? [name] : [picture, name]),
      element("td", { className: "left", text: first.name }),
      element("td", { className: "number" }, [
        probabilityBar(first.probability, color(i)),
        element("span", { text: first.probability.toFixed(3) }),
      ]),
      element("td", { className: "left second", text: `${second.name} ${second.probability.toFixed(3)}` }),
      element("td", { className: "left", text: nodes.status(i) }),
    ];
    const made = element("tr", {}, cells);
    if (nodes.isWrong(i)) made.classList.add("wrong");
    made.addEventListener("pointerenter", () => onHover(i));
    return made;
  }

  function draw() {
    const first = page * ROWS, shown = indices.slice(first, first + ROWS);
    parts.body.replaceChildren(...shown.map(row));
    if (shown.length === 0) {
      const none = element("td", { text: "No node passes these filters.", colspan: 5 });
      none.className = "left note";
      parts.body.append(element("tr", {}, [none]));
    }
    const range = shown.length ? `${first + 1}–${first + shown.length} of ` : "";
    parts.count.textContent = `${range}${indices.length.toLocaleString("en")} nodes`;
    previous.disabled = page === 0;
    next.disabled = first + ROWS >= indices.length;
    for (const header of parts.headers) {
      const own = header.dataset.column === column;
      const order = descending ? "descending" : "ascending";
      header.closest("th").setAttribute("aria-sort", own ? order : "none");
    }
  }

  function turn(to) {
    page = Math.max(0, to);
    draw();
  }

  function sort() {
    sortNodes(nodes, indices, column, descending);
    turn(0);
  }

  for (const header of parts.headers) {
    header.addEventListener("click", () => {
      descending = header.dataset.column === column && !descending;
      column = header.dataset.column;
      sort();
    });
  }
  previous.addEventListener("click", () => turn(page - 1));
  next.addEventListener("click", () => turn(page + 1));
  return {
    show(found) {
      indices = found.slice();
      sort();
    },
    get indices() {
      return indices;
    },
  };
}
