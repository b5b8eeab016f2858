/** The report of a result: map and table of the nodes, and what to label next. */

import { colorRamp, connectZoom, copy, showLiveParts, thumbnailsOf } from "./controls.js";
import { certaintyPalette, classPalette, createMap } from "./map.js";
import { csvOf, decodeNodes, filterNodes } from "./nodes.js";
import { createTable, element, probabilityBar } from "./table.js";

const byId = (id) => document.getElementById(id);
const payload = JSON.parse(byId("nodes").textContent);
const nodes = decodeNodes(payload);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const palette = classPalette(nodes.classes.length);
const classColor = (code) => (dark.matches ? palette.dark : palette.light)[code];
const ERROR_COLORS = {
  light: ["#9fb3c4", "#c22f2f", "#d9dde2"], dark: ["#5b7389", "#ff6b6b", "#3a4048"],
}; // right, wrong, unknown

const thumbnail = thumbnailsOf(payload.thumbnails);

// ---- details of one node

function showDetails(i, announced = false) {
  const box = byId("details");
  if (i < 0) return;
  const picture = thumbnail(i, "picture");
  const bars = nodes.top(i).flatMap(({ name, code, probability }) => [
    element("span", { text: name, className: "class" }),
    probabilityBar(probability, classColor(code)),
    element("span", { text: probability.toFixed(3), className: "figure" }),
  ]);
  const lines = [["status", nodes.status(i)]];
  if (nodes.hasTruth && nodes.name(nodes.truth(i))) lines.push(["true class", nodes.name(nodes.truth(i))]);
  box.replaceChildren(
    ...(picture === null ? [] : [picture]),
    element("h3", { text: payload.ids === null ? `node ${nodes.id(i)}` : nodes.id(i) }),
    element("div", { className: "bars" }, bars),
    element("p", { className: "note", text: lines.map((line) => line.join(": ")).join(" · ") }),
  );
  if (announced) {
    const [first] = nodes.top(i);
    byId("announced").textContent = `${nodes.id(i)}: ${first.name}, ${first.probability.toFixed(2)}`;
  }
}

// ---- filters, map and table

const filters = { text: "", code: -1, status: "all", most: 1, selection: null };
let map = null, colorBy = "class", seen = -1;

const table = createTable(
  nodes,
  {
    body: byId("rows"), pager: byId("pager"), count: byId("count"),
    headers: document.querySelectorAll("#table [data-column]"),
  },
  {
    thumbnail,
    color: (i) => classColor(nodes.label(i)),
    onHover: showDetails,
    onPick(i) {
      showDetails(i, true);
      map.focusOn(i);
      byId("map").scrollIntoView({ block: "nearest" });
    },
  },
);

function applyFilters() {
  const found = filterNodes(nodes, filters);
  table.show(found);
  byId("clear-selection").hidden = filters.selection === null;
  const mask = found.length === nodes.n ? null : new Uint8Array(nodes.n);
  if (mask !== null) for (const i of found) mask[i] = 1;
  map.setVisible(mask);
}

function setCode(code) {
  filters.code = code;
  byId("filter-class").value = String(code);
  for (const chip of byId("legend").querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", String(Number(chip.dataset.code) === code));
  }
  applyFilters();
}

function setSelection(indices) {
  filters.selection = indices.length ? new Set(indices) : null;
  applyFilters();
}

function colors() {
  const paint = (value) => Uint16Array.from({ length: nodes.n }, (_, i) => value(i));
  if (colorBy === "certainty") {
    return [paint((i) => Math.round(255 * Math.min(1, nodes.certainty(i)))), certaintyPalette()];
  }
  if (colorBy === "errors") {
    const known = (i) => nodes.name(nodes.truth(i)) !== "";
    return [paint((i) => (known(i) ? Number(nodes.isWrong(i)) : 2)), ERROR_COLORS];
  }
  return [paint(nodes.label), palette];
}

function swatch(color) {
  const made = element("span", { className: "swatch", "aria-hidden": "true" });
  made.style.background = color;
  return made;
}

function drawLegend() {
  const box = byId("legend"), theme = dark.matches ? "dark" : "light";
  if (colorBy === "class") {
    box.replaceChildren(...nodes.classes.map((name, code) => {
      const chip = element("button", { type: "button", className: "chip", "data-code": code,
        "aria-pressed": String(filters.code === code) }, [swatch(classColor(code)), name]);
      chip.addEventListener("click", () => setCode(filters.code === code ? -1 : code));
      return chip;
    }));
  } else if (colorBy === "certainty") {
    const colors = certaintyPalette()[theme];
    box.replaceChildren("equally probable classes", colorRamp(colors), "certain");
  } else {
    const [right, wrong, unknown] = ERROR_COLORS[theme];
    box.replaceChildren(swatch(right), "right", swatch(wrong), "wrong", swatch(unknown), "unknown");
  }
}

function startMap() {
  const emphasis = Array.from({ length: nodes.n }, (_, i) => i).filter(nodes.isLabelled);
  const [color, colorPalette] = colors();
  map = createMap(
    byId("map"),
    {
      x: nodes.columns.x, y: nodes.columns.y, color, palette: colorPalette, wheel: "focus",
      emphasis: emphasis.length <= nodes.n / 5 ? emphasis : [],
      label: `Map of ${nodes.n} nodes. Arrow keys go from node to node, plus and minus zoom.`,
    },
    {
      onHover(i, { byKeyboard }) {
        if (i !== seen || byKeyboard) showDetails(i, byKeyboard);
        seen = i;
      },
      onClick: (i) => showDetails(i, true),
      onLasso(found) {
        setLasso(false);
        map.setSelected(found.length < 5000 ? found : []);
        setSelection(found);
      },
    },
  );
}

function setLasso(on) {
  map.setMode(on ? "lasso" : "pan");
  byId("lasso").setAttribute("aria-pressed", String(on));
}

function connectMap() {
  byId("color-by").addEventListener("change", (event) => {
    colorBy = event.target.value;
    map.setColor(...colors());
    drawLegend();
  });
  byId("lasso").addEventListener("click", () => {
    setLasso(byId("lasso").getAttribute("aria-pressed") !== "true");
  });
  connectZoom(map);
}

// ---- CSV

function download(text, name) {
  const link = element("a", { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function connect() {
  for (const [code, name] of nodes.classes.entries()) {
    byId("filter-class").append(element("option", { value: code, text: name }));
  }
  byId("search").addEventListener("input", (event) => {
    filters.text = event.target.value;
    applyFilters();
  });
  byId("filter-class").addEventListener("change", (event) => setCode(Number(event.target.value)));
  byId("filter-status").addEventListener("change", (event) => {
    filters.status = event.target.value;
    applyFilters();
  });
  byId("filter-most").addEventListener("input", (event) => {
    filters.most = Number(event.target.value);
    byId("most").textContent = filters.most.toFixed(2);
    applyFilters();
  });
  byId("clear-selection").addEventListener("click", () => {
    map.setSelected([]);
    setSelection([]);
  });
  byId("download").addEventListener("click", () => {
    download(csvOf(nodes, table.indices), "nodes.csv");
  });
  byId("download-next")?.addEventListener("click", () => {
    download(csvOf(nodes, payload.next), "label-next.csv");
  });
  byId("copy-next")?.addEventListener("click", (event) => {
    copy(payload.next.map(nodes.id).join("\n") + "\n", event.target);
  });
}

showLiveParts();
connect();
startMap();
connectMap();
drawLegend();
dark.addEventListener("change", drawLegend);
applyFilters();
showDetails(payload.next[0] ?? 0);
