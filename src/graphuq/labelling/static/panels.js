/** Panels beside the item: neighbours, errors left, what to look at again, the map. */

import { HAS_TAGS, byId, dot, el, get, percent, post, smallView } from "./elements.js";
import { classPalette, createMap } from "./map.js";
import { tagsIn, worded } from "./tags.js";

const SVG = "http://www.w3.org/2000/svg";
const MAX_PREVIEW = 200; // items that are shown before they are labelled together
const SHOWN_TAGS = 8; // whose expected errors are shown
const WIDTH = 300, HEIGHT = 120, LEFT = 44, BOTTOM = 20;

function svg(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

export function showNeighbours(card, colorOf, open) {
  const near = card.neighbours;
  byId("why-note").textContent = card.blind ? "Hidden, so that the label is your own."
    : near.length === 0 ? "No label yet: this item tells most about the others."
    : "The labelled items most similar to this one:";
  byId("why").replaceChildren(...near.map((item) => smallView(
    item, [...dotsOf(item.label, colorOf), `${worded(item.label) ?? "no label now"}, similarity ${item.closeness.toFixed(2)}`], open,
  )));
}

/** A dot of each class of a label. */
function dotsOf(label, colorOf) {
  return (HAS_TAGS ? tagsIn(label ?? "") : [label]).map((name) => dot(colorOf(name)));
}

/** Expected errors against labels, with the interval where it was computed. */
export function showErrors(state) {
  const text = byId("errors");
  if (state.errors === null) {
    text.textContent = state.uncounted ?? (HAS_TAGS
      ? "Confirm items with a tag and without it to see how many tags would be wrong."
      : "Label two classes to see how many errors are left.");
    byId("chart").replaceChildren();
    return;
  }
  const { n_labels, n_left, is_average } = state.errors;
  const [expected, lower, upper] = ["expected", "lower", "upper"].map((n) => Math.round(state.errors[n]));
  const range = upper > lower ? ` (90\u00a0%: ${lower} to ${upper})` : "";
  const who = is_average ? "an average over models" : "the model";
  const what = HAS_TAGS ? "tags of unlabelled items" : "unlabelled items";
  const worst = [...state.errors.by_tag].sort((a, b) => b[1] - a[1]).slice(0, SHOWN_TAGS)
    .map(([name, n]) => `${name} ${n < 10 ? n.toFixed(1) : Math.round(n)}`);
  text.textContent = `About ${expected}${range} of ${n_left.toLocaleString("en")} ${what} would be `
    + `wrong, says ${who} at ${n_labels} labels.${worst.length ? ` By tag: ${worst.join(", ")}.` : ""}`;
  byId("chart").replaceChildren(chart(state.history, text.textContent));
}

function chart(history, label) {
  const made = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img",
    "aria-label": `Errors left against labels. ${label}` });
  const first = Math.min(...history.map(([n]) => n)), last = Math.max(...history.map(([n]) => n));
  const top = Math.max(1, ...history.map(([, , , upper]) => upper));
  const x = (n) => LEFT + ((n - first) / Math.max(1, last - first)) * (WIDTH - LEFT - 10);
  const y = (value) => (HEIGHT - BOTTOM) * (1 - value / top) + 6;
  const floor = y(0);
  const points = (values) => values.map(([n, v]) => `${x(n).toFixed(1)},${y(v).toFixed(1)}`);
  const known = history.filter(([, , lower, upper]) => upper > lower); // the interval was computed
  const band = [...points(known.map(([n, , , upper]) => [n, upper])),
    ...points(known.map(([n, , lower]) => [n, lower])).reverse()];
  made.append(
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - 6, y1: floor, y2: floor }),
    svg("polygon", { class: "band", points: band.join(" ") }),
    svg("polyline", { class: "line", points: points(history.map(([n, e]) => [n, e])).join(" ") }),
    svg("circle", { cx: x(history.at(-1)[0]), cy: y(history.at(-1)[1]), r: 3.5 }),
    svg("text", { x: LEFT - 6, y: 13, "text-anchor": "end" }, String(Math.round(top))),
    svg("text", { x: LEFT - 6, y: floor, "text-anchor": "end" }, "0"),
    svg("text", { x: LEFT, y: HEIGHT + 2, "text-anchor": "start" }, String(first)),
    svg("text", { x: WIDTH - 8, y: HEIGHT + 2, "text-anchor": "end" }, `${last} labels`),
  );
  made.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT + 6}`);
  return made;
}

export function showReview(state, colorOf, open) {
  const suspects = state.suspects.map((item) => smallView(item, [
    ...(HAS_TAGS ? [] : [dot(colorOf(item.given))]), `${item.given} has ${percent(item.probability)}; the others say `,
    el("b", { textContent: item.other }),
  ], open));
  const disagreements = state.disagreements.map((item) => smallView(item,
    [Object.entries(item.labels).map(([user, label]) => `${user}: ${worded(label)}`).join(" · ")], open));
  byId("suspects").replaceChildren(...disagreements, ...suspects);
  byId("decide").hidden = disagreements.length === 0;
  byId("decide").textContent = disagreements.length === 1 ? "Decide the disagreement"
    : `Decide ${disagreements.length} disagreements`;
  byId("review").hidden = suspects.length + disagreements.length === 0;
}

/** How often each person is right, once that is asked for. */
export function showPeople({ people, accuracies }) {
  const { people: found, n_labels, busy, failure } = accuracies;
  byId("people-panel").hidden = people.length < 2;
  byId("people-right").disabled = busy;
  byId("people-note").textContent = HAS_TAGS ? "Agreement about each tag is in the report."
    : busy ? "Computing, which takes some minutes. You can go on."
    : failure ? failure : found.length === 0 ? "Agreement is in the report."
      : `By a model of ${n_labels} labels and the graph, with 90\u00a0% intervals:`;
  byId("accuracies").replaceChildren(...found.map(({ annotator, accuracy, lower, upper }) => el("li", {
    className: "quiet", textContent:
      `${annotator}: right in ${percent(accuracy)} (${percent(lower)} to ${percent(upper)})` })));
}

/** Colours of a picture, in which labelled pixels have those of their classes. */
function inPicture({ picture, color, labelled }, palette) {
  const shown = picture.color.slice(), n = picture.palette.length;
  for (const row of labelled) shown[row] = n + color[row];
  const joined = (theme) => [...picture.palette, ...palette[theme]];
  return [shown, { light: joined("light"), dark: joined("dark") }];
}

/** The map, which is drawn when its panel is first opened, and again for each new posterior. */
export function mapPanel(state, open, say, preview, lost) {
  let map = null, selected = [], version = -1, busy = false;
  const note = byId("map-note"), lasso = byId("map-lasso"), toQueue = byId("map-queue");
  const toLabel = byId("map-label"), asPicture = byId("map-picture");
  let data = null;

  function choose(rows) {
    selected = [...rows];
    toQueue.disabled = selected.length === 0;
    toLabel.disabled = selected.length === 0;
    note.textContent = selected.length ? `${selected.length} items selected.` : "";
  }

  async function renew() {
    if (!byId("map-panel").open || busy || version === state().version) return;
    busy = true;
    if (map === null) note.textContent = "Arranging the items …";
    try {
      data = await get("/api/map");
      if (data.x.length === 0) return;
      version = state().version;
      if (map === null) note.textContent = "";
      asPicture.hidden = data.picture === undefined;
      if (map === null) {
        map = createMap(byId("map"), { ...data, palette: classPalette(data.classes.length),
          square: data.picture !== undefined, wheel: "focus",
          label: `Map of all items, coloured by their likeliest ${HAS_TAGS ? "tag" : "class"}` }, {
          onHover: hover,
          onClick: (row) => row >= 0 && open(row),
          onLasso: choose,
        });
      }
      paint();
    } finally {
      busy = false;
    }
  }

  function paint() {
    const palette = classPalette(data.classes.length);
    const picture = !asPicture.hidden && asPicture.getAttribute("aria-pressed") === "true";
    map.setColor(...(picture ? inPicture(data, palette) : [data.color, palette]));
    map.setEmphasis(data.labelled);
    map.setNext(data.next ?? []);
  }

  let hovered = -1;
  async function hover(row) {
    hovered = row;
    if (row < 0) return;
    const card = await get(`/api/card/${row}`);
    if (hovered !== row) return;
    const best = worded(card.label ?? card.likeliest?.name) ?? "no class yet";
    note.textContent = `${card.id}: ${best}. ${card.snippet.slice(0, 90)}`;
  }

  lasso.addEventListener("click", () => {
    const on = lasso.getAttribute("aria-pressed") !== "true";
    lasso.setAttribute("aria-pressed", String(on));
    map?.setMode(on ? "lasso" : "pan");
  });
  asPicture.addEventListener("click", () => {
    asPicture.setAttribute("aria-pressed", String(asPicture.getAttribute("aria-pressed") !== "true"));
    paint();
  });
  byId("map-reset").addEventListener("click", () => map?.reset());
  toQueue.addEventListener("click", async () => {
    await post("/api/wish", { rows: selected.slice(0, 1000) });
    say(`${Math.min(1000, selected.length)} items of the map come next.`);
    map?.setSelected([]);
    choose([]);
  });
  toLabel.addEventListener("click", async () => {
    try {
      const rows = selected.slice(0, MAX_PREVIEW);
      const views = await get("/api/views", { rows: rows.join(",") });
      preview(views, selected.length > rows.length
        ? `The first ${rows.length} of ${selected.length} selected items` : "The selected items");
    } catch (error) {
      lost(error);
    }
  });
  byId("map-panel").addEventListener("toggle", renew);
  return { renew };
}
