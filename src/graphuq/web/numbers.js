/** The report of a regression: a map of the rows, by predicted value or standard deviation. */

import { colorRamp, connectZoom, copy, showLiveParts, thumbnailsOf } from "./controls.js";
import { certaintyPalette, createMap } from "./map.js";
import { unpack } from "./nodes.js";
import { element } from "./table.js";

const byId = (id) => document.getElementById(id);
const payload = JSON.parse(byId("nodes").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const floats = (name) => new Float64Array(unpack(payload.columns[name]).buffer);
const node = unpack(payload.columns.node), evidence = unpack(payload.columns.evidence);
const mean = floats("mean"), std = floats("std"), given = floats("given");
const low = floats("low"), high = floats("high"); // ends of intervals
const field = "field" in payload.columns ? floats("field") : mean; // what the map shows
const thumbnail = thumbnailsOf(payload.thumbnails);
const id = (i) => (payload.ids === null ? String(node[i]) : payload.ids[i]);
const { decimals, field_decimals: fieldDecimals } = payload;
/** A number with the digits that Python's `number_format` writes. */
function figure(value, digits = decimals) {
  if (digits === null) return value.toExponential(3);
  const [whole, part] = (value + 0).toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part === undefined ? grouped : `${grouped}.${part}`;
}
const shades = (theme) => certaintyPalette()[theme].reverse();
const palette = { light: shades("light"), dark: shades("dark") }; // low is blue, high is orange

function showDetails(i, announced = false) {
  if (i < 0) return;
  const picture = thumbnail(i, "picture");
  const whole = payload.is_whole ? 0 : decimals; // of counts
  const lines = [
    ["predicted", figure(mean[i])],
    ["standard deviation", figure(std[i])],
    ["90 % interval from", figure(low[i], whole)],
    ["to", figure(high[i], whole)],
    ...(field === mean ? [] : [["for an exposure of 1", figure(field[i], fieldDecimals)]]),
    ["given", Number.isNaN(given[i]) ? "–" : figure(given[i], whole)],
  ];
  const rows = lines.map(([words, value]) => element("tr", {}, [
    element("td", { text: words }), element("td", { text: value }),
  ]));
  byId("details").replaceChildren(
    ...(picture === null ? [] : [picture]),
    element("h3", { text: payload.ids === null ? `row ${id(i)}` : id(i) }),
    element("table", {}, [element("tbody", {}, rows)]),
    element("p", { className: "note", text: evidence[i] ? "" : "no number in its component" }),
  );
  if (announced) {
    const words = `${figure(mean[i])}, standard deviation ${figure(std[i])}`;
    byId("announced").textContent = `${id(i)}: ${words}`;
  }
}

/** Colours of all rows by one quantity, and the legend; the two ends hold all beyond them. */
function colorBy(name) {
  const [values, digits] = name === "std" ? [std, decimals] : [field, fieldDecimals];
  const [low, high] = payload.ends[name];
  const share = (value) => Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  const ramp = colorRamp(palette[dark.matches ? "dark" : "light"]);
  byId("legend").replaceChildren(`${figure(low, digits)} or less`, ramp, `${figure(high, digits)} or more`);
  return Uint16Array.from(values, (value) => Math.round(255 * share(value)));
}

showLiveParts();
const labelled = Array.from(node.keys()).filter((i) => !Number.isNaN(given[i]));
let seen = -1;
const map = createMap(
  byId("map"),
  {
    x: unpack(payload.columns.x), y: unpack(payload.columns.y), wheel: "focus",
    color: colorBy("mean"), palette, emphasis: labelled.length <= node.length / 5 ? labelled : [],
    label: `Map of ${node.length} rows. Arrow keys go from row to row, plus and minus zoom.`,
  },
  {
    onHover(i, { byKeyboard }) {
      if (i !== seen || byKeyboard) showDetails(i, byKeyboard);
      seen = i;
    },
    onClick: (i) => showDetails(i, true),
  },
);
connectZoom(map);
byId("color-by").addEventListener("change", () => map.setColor(colorBy(byId("color-by").value)));
dark.addEventListener("change", () => colorBy(byId("color-by").value));
byId("copy-next")?.addEventListener("click", (event) => {
  copy(payload.next.map(id).join("\n") + "\n", event.target);
});
showDetails(payload.next[0] ?? 0);
