/** Elements of the page and requests to its server. Text of items is only ever `textContent`. */

const FEW_PIXELS = 200; // of a side, below which a picture is shown enlarged

export const byId = (id) => document.getElementById(id);

/** Make an element; `properties` are set as they are, `data-` and `aria-` as attributes. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** In a notebook the widget passes requests on; see notebook.js. */
/** Path of the page, which nobody can guess; empty in a notebook. */
export const BASE = document.body.dataset.base;
/** Whether an item may have several classes: tags. */
export const HAS_TAGS = document.body.dataset.tags !== undefined;
const request = window.graphuqRequest ?? ((path, options) => fetch(BASE + path, options));

export async function get(path, parameters = {}) {
  return answered(await request(`${path}?${new URLSearchParams(parameters)}`));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answered(await request(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answered(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  let reason = text;
  try {
    reason = JSON.parse(text).error ?? text;
  } catch { /* the text itself is the reason */ }
  throw Object.assign(new Error(reason), { status: response.status });
}

const pictures = new Map(); // addresses of pictures that came through the widget

/** An image of an item, which is fetched at once unless it is lazy. */
export function pictureOf(row, properties = {}) {
  const made = el("img", properties), path = `/item/${row}/picture`;
  made.addEventListener("load", () => {
    const few = Math.max(made.naturalWidth, made.naturalHeight) < FEW_PIXELS;
    made.classList.toggle("pixelated", few);
  });
  if (window.graphuqRequest === undefined) {
    made.src = BASE + path;
  } else {
    if (!pictures.has(row)) {
      pictures.set(row, request(path).then((answer) => answer.blob()).then(URL.createObjectURL));
    }
    pictures.get(row).then((address) => { made.src = address; });
  }
  return made;
}

/** What the browser remembers for this page, if it may remember anything. */
export function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function percent(share) {
  if (share > 0.995 && share < 1) return "> 99 %";
  if (share < 0.005 && share > 0) return "< 1 %";
  return `${Math.round(100 * share)} %`;
}

/** The bar of a class, with a line from end to end of the interval; and the interval in words. */
export function barOf(share, interval) {
  const fill = el("i");
  fill.style.width = `${100 * (share ?? 0)}%`;
  const bar = el("span", { className: "bar", "aria-hidden": "true" }, fill);
  if (!interval) return [bar, ""];
  const [lower, upper] = interval, line = el("b");
  line.style.left = `${100 * lower}%`;
  line.style.width = `${100 * (upper - lower)}%`;
  bar.append(line);
  return [bar, `; 90 % interval ${percent(lower)} to ${percent(upper)}`];
}

/** The item in full: text or picture, and the columns of its row. */
export function itemViews(card) {
  const { kind, text, fields, more, pixelated } = card.content, views = [];
  if (kind === "text") views.push(el("div", { className: "text", textContent: text }));
  if (kind === "picture") {
    const className = pixelated ? "picture pixelated" : "picture";
    views.push(pictureOf(card.row, { className, alt: `Item ${card.id}` }));
  }
  if (fields !== undefined) {
    const list = el("dl", { className: "fields" });
    for (const [name, value] of fields) {
      list.append(el("dt", { textContent: name }), el("dd", { textContent: value }));
    }
    if (more > 0) list.append(el("dt", {}, "…"), el("dd", {}, `${more} more columns`));
    views.push(list);
  }
  return views;
}

/** A long name, which breaks where its parts join, such as comp.sys.mac. */
export function breakable(name) {
  return name.split(/(?<=[._/:-])/).flatMap((part, k) => (k === 0 ? [part] : [el("wbr"), part]));
}

/** The face of an item in a small view: its picture or the beginning of its text. */
export function faces(item) {
  if (item.kind === "picture") {
    const kind = item.pixelated ? "face pixelated" : "face";
    return [pictureOf(item.row, { className: kind, alt: `Item ${item.id}`, loading: "lazy" })];
  }
  return [el("span", { className: "snippet", textContent: item.snippet || item.id })];
}

/** A small view that opens its item. `told` is what the page says about it. */
export function smallView(item, told, open) {
  const button = el("button", { className: "view" }, ...faces(item),
    el("span", { className: "told" }, ...told));
  button.addEventListener("click", () => open(item.row));
  return el("li", {}, button);
}

export function dot(color) {
  const made = el("span", { className: "dot", "aria-hidden": "true" });
  made.style.setProperty("--class", color);
  return made;
}
