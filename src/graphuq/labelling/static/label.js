/**
 * The labelling page: shows one item at a time, sends labels, and follows the posterior.
 *
 * The next items are fetched in advance, so that the next one appears at once. Labels are sent one
 * after the other; a label that the server did not store is given back with an alert. A new
 * posterior replaces the items that come next. The bars of the item that is shown change only while
 * nobody works, and the class that "Accept" gives never changes in the moment of the key.
 */

import { BASE, barOf, breakable, byId, dot, el, faces, get, itemViews, percent, pictureOf, post, remembered, smallView } from "./elements.js";
import { classPalette } from "./map.js";
import { mapPanel, showErrors, showNeighbours, showReview } from "./panels.js";

const AHEAD = 8; // items fetched in advance
const FREE_KEYS = [..."1234567890", ..."abcdehijklmopqrtvwxyz"]; // f, g, n, s and u are actions
const MANY_CLASSES = 12; // above which a class is found by typing
const SURE = 0.9; // probability from which a look-alike is marked in advance
const LEGEND = " Bars are probabilities, lines their 90\u00a0% intervals.";
const IDLE_MS = 1500; // without a key, after which the bars of the shown item are renewed
const REACTION_MS = 600; // after such a change, in which "Accept" is ignored
const TAB = Math.random().toString(36).slice(2); // two pages of one person get different items
const dark = window.matchMedia("(prefers-color-scheme: dark)");

let state = { classes: [], revision: -1, version: -1, n_items: 0, n_labelled: 0 };
let current = null; // card that is shown
let queue = []; // cards that come next
let filling = null, refill = false;
let sending = Promise.resolve(); // labels go out in their order
let acted = -Infinity, changed = -Infinity; // times of the latest act, and of the latest change under the eyes
let restored = 0; // labels that were written again into the file
const unsaved = new Set(); // rows whose labels are on their way
const passed = new Set(); // rows that got a label or were skipped since the queue was asked for

if (BASE !== "") history.replaceState(null, "", `${BASE}/`); // a cookie has the token
byId("user").value = remembered("user") ?? document.body.dataset.user;

const user = () => byId("user").value.trim() || document.body.dataset.user;
const say = (text) => { byId("said").textContent = text; };
const classes = () => state.classes.map(({ name }) => name);

function colorOf(name) {
  const at = classes().indexOf(name), palette = classPalette(Math.max(1, state.classes.length));
  return (dark.matches ? palette.dark : palette.light)[Math.max(0, at)];
}

/** Keys of the classes: a class named by one such key has it, and the others get the rest in turn. */
function keysOf(names) {
  const free = FREE_KEYS.filter((key) => !names.includes(key));
  return names.map((name) => (FREE_KEYS.includes(name) ? name : free.shift()));
}

function alarm(text) {
  byId("alert").hidden = text === "";
  if (byId("alert").textContent !== text) byId("alert").textContent = text;
}

// ---- the item

function show(card) {
  current = card;
  byId("item-name").textContent = card === null ? "" : card.id;
  const label = byId("item-label");
  label.hidden = !card?.label;
  label.textContent = card?.label ? `labelled ${card.label}` : "";
  const done = state.n_items > 0 && state.n_labelled >= state.n_items;
  const empty = done ? "All items have a label." : "The next item is on its way …";
  byId("item").replaceChildren(
    ...(card === null ? [el("p", { className: "text", textContent: empty })] : itemViews(card)));
  byId("item").scrollTop = 0;
  showClasses();
  if (card === null) byId("why").replaceChildren();
  else showNeighbours(card, colorOf, openRow);
}

function showClasses() {
  const shares = new Map((current?.classes ?? []).map(({ name, probability }) => [name, probability]));
  const intervals = new Map((current?.classes ?? []).map(({ name, interval }) => [name, interval]));
  const likeliest = current?.likeliest?.name, keys = keysOf(classes()), found = foundClasses();
  byId("classes").replaceChildren(...state.classes.map(({ name, count }, k) => {
    const share = shares.get(name), key = keys[k];
    const [bar, range] = barOf(share, intervals.get(name));
    const button = el("button", {
      className: `class${name === likeliest ? " likeliest" : ""}${name === found?.[0] ? " found" : ""}`,
      hidden: found !== null && !found.includes(name),
      "aria-pressed": String(current?.label === name),
      title: `${name}: ${count} ${count === 1 ? "label" : "labels"}${range}`,
    },
    key === undefined ? el("span") : el("kbd", { textContent: key }),
    el("span", { className: "name" }, ...breakable(name)),
    bar,
    el("span", { className: "share", textContent: share === undefined ? "" : percent(share) }));
    button.style.setProperty("--class", colorOf(name));
    button.addEventListener("click", (event) => {
      byId("class-filter").value = "";
      give(name);
      release(event);
    });
    return button;
  }));
  byId("classes-title").textContent = state.classes.length === 0
    ? "No class yet: press n and name the first one."
    : found?.length === 0 ? "No class has this in its name. Press Escape, then n for a new one."
      : `Which class?${state.errors === null ? "" : LEGEND}`;
  byId("find").hidden = state.classes.length <= MANY_CLASSES;
  scrollTo(byId("classes").querySelector(".found") ?? byId("classes").querySelector(".likeliest"));
  byId("accept").disabled = likeliest === undefined;
  byId("accept").title = likeliest ?? "";
  byId("accept").querySelector("b").textContent = likeliest ?? "";
  for (const id of ["skip", "new-class", "alike"]) byId(id).disabled = current === null;
}

/** Scroll the classes, and not the page, so that one of them is seen. */
function scrollTo(button) {
  const box = byId("classes");
  if (button === null) return;
  const top = button.offsetTop - box.offsetTop, bottom = top + button.offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

/** Names of the classes that were typed for, the best first; null if nothing is typed. */
function foundClasses() {
  const typed = byId("class-filter").value.trim().toLowerCase();
  if (typed === "") return null;
  const at = (name) => name.toLowerCase().indexOf(typed);
  const shares = new Map((current?.classes ?? []).map(({ name, probability }) => [name, probability]));
  const rank = (name) => (at(name) === 0 ? 0 : 1) - (shares.get(name) ?? 0) / 2;
  return classes().filter((name) => at(name) >= 0).sort((a, b) => rank(a) - rank(b));
}

function stopFinding() {
  byId("class-filter").value = "";
  byId("item-name").focus({ preventScroll: true });
  showClasses();
}

byId("class-filter").addEventListener("input", showClasses);
byId("class-filter").addEventListener("keydown", (event) => {
  const found = foundClasses();
  if (event.key === "Escape") stopFinding();
  if (event.key !== "Enter" || event.repeat || !found?.length || current === null) return;
  event.preventDefault();
  byId("class-filter").value = "";
  byId("item-name").focus({ preventScroll: true });
  give(found[0]);
});

/** After a click of the pointer, keys act on the item again and not on the button. */
function release(event) {
  if (event.detail > 0) byId("item-name").focus({ preventScroll: true });
}

function next() {
  acted = performance.now();
  show(queue.shift() ?? null);
  fill();
}

async function fill(renew = false) {
  refill = refill || renew;
  if (filling !== null || (!refill && queue.length >= AHEAD / 2)) return;
  const whole = refill;
  refill = false;
  const held = [...unsaved, ...(current === null ? [] : [current.row]),
    ...(whole ? [] : queue.map(({ row }) => row))];
  passed.clear();
  filling = get("/api/queue", { user: user(), tab: TAB, n: AHEAD, held: held.join(",") });
  try {
    const cards = (await filling).filter(
      ({ row }) => !unsaved.has(row) && !passed.has(row) && row !== current?.row);
    if (whole) queue = [];
    const known = new Set(queue.map(({ row }) => row));
    queue.push(...cards.filter(({ row }) => !known.has(row)));
    for (const card of queue) if (card.kind === "picture") pictureOf(card.row);
    if (current === null && queue.length > 0) show(queue.shift());
  } catch (error) {
    lost(error);
  } finally {
    filling = null;
  }
  if (refill) fill();
}

/** Show the present posterior of an item at which someone looks for a while. */
async function renewCurrent() {
  const card = current;
  if (card === null || card.version === state.version) return;
  if (performance.now() - acted < IDLE_MS) {
    setTimeout(renewCurrent, IDLE_MS);
    return;
  }
  const renewed = await get(`/api/card/${card.row}`).catch(() => null);
  if (renewed === null || current !== card || performance.now() - acted < IDLE_MS) return;
  if (renewed.likeliest?.name !== card.likeliest?.name) changed = performance.now();
  Object.assign(card, renewed);
  showClasses();
  showNeighbours(card, colorOf, openRow);
}

async function openRow(row) {
  acted = performance.now();
  try {
    const card = await get(`/api/card/${row}`);
    if (current !== null && current.row !== row) queue.unshift(current);
    queue = queue.filter((other) => other.row !== row);
    show(card);
    byId("item-name").focus();
  } catch (error) {
    lost(error);
  }
}

// ---- what a person does

function give(label) {
  if (current === null) return;
  const card = current;
  passed.add(card.row);
  const share = card.classes.find(({ name }) => name === label)?.probability ?? null;
  unsaved.add(card.row);
  next();
  say(`${card.id}: ${label}`);
  send([card.row], label, [share], card.version, () => {
    card.label = null;
    queue.unshift(card);
  });
}

function send(rows, label, probabilities, version, onFailure) {
  const body = { user: user(), rows, label, probabilities, version };
  sending = sending.then(async () => {
    try {
      await post("/api/label", body);
      alarm("");
    } catch (error) {
      alarm(`Not saved: ${error.message}. Please label the item again.`);
      onFailure();
    } finally {
      for (const row of rows) unsaved.delete(row);
    }
  });
}

function accept() {
  if (!current?.likeliest) return;
  if (performance.now() - changed > REACTION_MS) give(current.likeliest.name);
  else say("The likeliest class has just changed; accept again.");
}

function skip() {
  if (current === null) return;
  const row = current.row;
  unsaved.add(row);
  passed.add(row);
  next();
  say("Skipped; the item comes again later.");
  sending = sending.then(() => post("/api/skip", { user: user(), rows: [row] }).catch(lost))
    .finally(() => unsaved.delete(row));
}

function undo() {
  sending = sending.then(async () => {
    try {
      const { cards, rows } = await post("/api/undo", { user: user() });
      if (cards.length === 0) {
        say("There is nothing to undo.");
        return;
      }
      if (current !== null && current.row !== cards[0].row) queue.unshift(current);
      queue = queue.filter(({ row }) => row !== cards[0].row);
      show(cards[0]);
      say(`Taken back: ${rows.length === 1 ? cards[0].id : `${rows.length} items`}.`);
    } catch (error) {
      lost(error);
    }
  });
}

function newClass() {
  if (current === null) return;
  byId("class-name").value = "";
  byId("class-dialog").showModal();
}

byId("class-dialog").querySelector("form").addEventListener("submit", () => {
  const name = byId("class-name").value.trim();
  if (name === "") return;
  if (!classes().includes(name)) state.classes.push({ name, count: 0 });
  give(name);
});

// ---- look-alikes and search

async function showAlike() {
  if (current === null || state.classes.length === 0) return;
  const label = byId("alike-class").value;
  const found = await get(`/api/alike/${current.row}`, { label });
  const box = (item, checked) => {
    const input = el("input", { type: "checkbox", checked, value: String(item.row) });
    input.addEventListener("change", countAlike);
    const share = item.likeliest ? `${item.likeliest.name} ${percent(item.likeliest.probability)}` : "";
    return el("li", {}, el("label", {}, ...faces(item),
      el("span", {}, input, ` ${share || item.id}`)));
  };
  const isSure = ({ likeliest }) => likeliest?.name === label && likeliest.probability >= SURE;
  byId("alikes").replaceChildren(box(current, true), ...found.map((item) => box(item, isSure(item))));
  alikes = new Map([current, ...found].map((item) => [item.row, item]));
  byId("alike-note").textContent = `Marked are those of ${label} with at least ${percent(SURE)}. `
    + "Mark others that you recognise, and take the mark from each one of another class.";
  countAlike();
}

let alikes = new Map(); // small views of the items that are shown, by row
const marked = () => [...byId("alikes").querySelectorAll(":checked")].map(({ value }) => Number(value));

function countAlike() {
  const n = marked().length;
  byId("alike-accept").disabled = n === 0;
  byId("alike-accept").textContent = `Label ${n} as ${byId("alike-class").value}`;
  byId("alike-all").disabled = n === alikes.size;
}

function openAlike() {
  if (current === null || state.classes.length === 0) return;
  byId("alike-class").replaceChildren(...classes().map((name) => el("option", {
    value: name, textContent: name, selected: name === (current.label ?? current.likeliest?.name),
  })));
  byId("alikes").replaceChildren();
  byId("alike-dialog").showModal();
  showAlike().catch(lost);
}

byId("alike-class").addEventListener("change", () => showAlike().catch(lost));
byId("alike-all").addEventListener("click", () => {
  for (const input of byId("alikes").querySelectorAll("input")) input.checked = true;
  countAlike();
});
byId("alike-accept").addEventListener("click", () => {
  const rows = marked(), label = byId("alike-class").value;
  const shares = rows.map((row) => {
    const likeliest = alikes.get(row)?.likeliest;
    return likeliest?.name === label ? likeliest.probability : null;
  });
  byId("alike-dialog").close();
  for (const row of rows) {
    unsaved.add(row);
    passed.add(row);
  }
  queue = queue.filter(({ row }) => !unsaved.has(row));
  send(rows, label, shares, current?.version ?? null, () => fill(true));
  say(`${rows.length} items: ${label}`);
  if (current !== null && unsaved.has(current.row)) next();
});

let asked = 0;
byId("query").addEventListener("input", async () => {
  const mine = ++asked, q = byId("query").value.trim();
  try {
    const hits = q === "" ? [] : await get("/api/search", { q });
    if (mine !== asked) return;
    byId("hits").replaceChildren(...hits.map((item) => smallView(item,
      item.label ? [dot(colorOf(item.label)), item.label] : [item.id],
      (row) => { byId("search-dialog").close(); openRow(row); })));
    byId("hits-note").textContent = q === "" ? "" : `${hits.length} found`;
  } catch (error) {
    lost(error);
  }
});

function openSearch() {
  byId("search-dialog").showModal();
  byId("query").select();
}

// ---- keys and buttons

function findClass() {
  if (state.classes.length > MANY_CLASSES) byId("class-filter").focus();
}

const actions = {
  " ": accept, s: skip, u: undo, n: newClass, g: openAlike, f: findClass, "/": openSearch,
};
const buttons = { accept, skip, undo, "new-class": newClass, alike: openAlike, search: openSearch };
for (const [id, act] of Object.entries(buttons)) {
  byId(id).addEventListener("click", (event) => { act(); release(event); });
}
for (const button of document.querySelectorAll("[data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}

for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("close", () => byId("item-name").focus({ preventScroll: true }));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (document.querySelector("dialog[open]")) return;
  const target = event.target, closed = target.closest("dialog:not([open])") !== null;
  const writes = !closed && target.closest("input, textarea, select, canvas");
  if (writes || (event.key === " " && target.closest("button, a, summary"))) return;
  const key = event.key.toLowerCase(), at = keysOf(classes()).indexOf(key);
  if (Object.hasOwn(actions, key)) actions[key]();
  else if (at >= 0) give(state.classes[at].name);
  else return;
  event.preventDefault();
});

byId("user").addEventListener("change", () => {
  remembered("user", user());
  fill(true);
});

// ---- news

const map = mapPanel(() => state, openRow, (text) => { say(text); fill(true); });

function lost(error) {
  if (error.status === 403) alarm("This page has a new address. Open the one that graphuq printed.");
  else alarm(error.status ? error.message : "No connection: is graphuq still running?");
}

function showState() {
  byId("progress").max = Math.max(1, state.n_items);
  byId("progress").value = state.n_labelled;
  byId("counts").textContent = `${state.n_labelled} of ${state.n_items.toLocaleString("en")} labelled`;
  const renewal = byId("renewal");
  renewal.className = `chip ${state.failure ? "bad" : state.busy ? "busy" : ""}`;
  renewal.textContent = state.failure ? "no new posterior"
    : !state.ready ? "building the graph" : state.busy ? "renewing" : "up to date";
  renewal.title = state.notes.join("\n");
  if (state.failure) alarm(`${state.failure} Labels are stored.`);
  if (state.restored > restored) {
    alarm(`The file of labels was replaced; ${state.restored - restored} labels that it lacked `
      + "were written again.");
  }
  restored = state.restored;
  showErrors(state);
  showReview(state, colorOf, openRow);
}

async function follow() {
  for (;;) {
    try {
      const news = await get("/api/state", { user: user(), tab: TAB, after: String(state.revision) });
      const renewed = news.version !== state.version || news.ready !== state.ready;
      const queued = news.queued && (renewed || !state.queued);
      const wished = news.revision !== state.revision;
      const before = classes().join("\n");
      state = news;
      showState();
      if (classes().join("\n") !== before) showClasses();
      if (current === null && queue.length === 0) show(null);
      if (renewed) renewCurrent();
      if (queued) await fill(true);
      else if (wished) fill();
      map.renew();
    } catch (error) {
      lost(error);
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

dark.addEventListener("change", () => { showClasses(); showState(); });
showClasses();
follow();
