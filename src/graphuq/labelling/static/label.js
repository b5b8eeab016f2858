/**
 * The labelling page: shows one item at a time, sends labels, and follows the posterior.
 *
 * The next items are fetched in advance, so that the next one appears at once. Labels are sent one
 * after the other; a label that the server did not store is given back with an alert. A new
 * posterior replaces the items that come next. The bars of the item that is shown change only while
 * nobody works, and the class that "Accept" gives never changes in the moment of the key.
 */

import { BASE, HAS_TAGS, barOf, breakable, byId, el, get, itemViews, percent, pictureOf, post, remembered } from "./elements.js";
import { classPalette } from "./map.js";
import { auditPanel } from "./audit.js";
import { findingDialogs } from "./finding.js";
import { showGuidelines } from "./guidelines.js";
import { Choice, worded } from "./tags.js";
import { mapPanel, showErrors, showNeighbours, showPeople, showReview } from "./panels.js";

const AHEAD = 8; // items fetched in advance
const FREE_KEYS = [..."1234567890", ..."abcdehijklmopqrtvwxyz"]; // f, g, n, s and u are actions
const MANY_CLASSES = 12; // above which a class is found by typing
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
let epoch = 0; // grows when items that were asked for before must not be shown any more
let restored = 0; // labels that were written again into the file
const unsaved = new Set(); // rows whose labels are on their way
const choice = new Choice(); // of tags
const passed = new Set(); // rows that got a label or were skipped since the queue was asked for

if (BASE !== "") history.replaceState(null, "", `${BASE}/`); // a cookie has the token
const HOSTED = document.body.dataset.hosted !== undefined; // the name is that of the login
if (!HOSTED) byId("user").value = remembered("user") ?? document.body.dataset.user;

const user = () => (HOSTED ? "" : byId("user").value.trim()) || document.body.dataset.user;
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
  choice.begin(card);
  byId("item-name").textContent = card === null ? "" : card.id;
  showMarks(card);
  const done = state.n_items > 0 && state.n_labelled >= state.n_items;
  const empty = done ? "All items have a label." : "The next item is on its way …";
  byId("item").replaceChildren(
    ...(card === null ? [el("p", { className: "text", textContent: empty })] : itemViews(card)));
  byId("item").scrollTop = 0;
  showClasses();
  if (card === null) byId("why").replaceChildren();
  else showNeighbours(card, colorOf, openRow);
}

/** What is said of an item: its label, whether it is read without help, and remarks. */
function showMarks(card) {
  const label = byId("item-label");
  label.hidden = !card?.label;
  label.textContent = card?.label ? `labelled ${worded(card.label)}` : "";
  byId("item-blind").hidden = !card?.blind;
  byId("item-blind").textContent = !card?.blind ? "" : card.blind === "audit"
    ? "audit: label it without help" : "a second person's label: without help";
  showRemarks(card);
}

function showClasses() {
  const shares = new Map((current?.classes ?? []).map(({ name, probability }) => [name, probability]));
  const intervals = new Map((current?.classes ?? []).map(({ name, interval }) => [name, interval]));
  const likeliest = current?.likeliest?.name, keys = keysOf(classes()), found = foundClasses();
  byId("classes").replaceChildren(...state.classes.map(({ name, count }, k) => {
    const share = shares.get(name), key = keys[k];
    const [bar, range] = barOf(share, intervals.get(name));
    const button = el("button", {
      className: `class${!HAS_TAGS && name === likeliest ? " likeliest" : ""}${name === found?.[0] ? " found" : ""}`,
      hidden: found !== null && !found.includes(name),
      "aria-pressed": String(HAS_TAGS ? choice.has(name) : current?.label === name),
      title: `${name}: ${count} ${count === 1 ? "label" : "labels"}${range}`,
    },
    key === undefined ? el("span") : el("kbd", { textContent: key }),
    el("span", { className: "name" }, ...breakable(name)),
    HAS_TAGS ? el("span", { className: "tick", "aria-hidden": "true", textContent: "✓" }) : null,
    bar,
    el("span", { className: "share", textContent: share === undefined ? "" : percent(share) }));
    button.style.setProperty("--class", colorOf(name));
    button.addEventListener("click", (event) => {
      byId("class-filter").value = "";
      choose(name);
      release(event);
    });
    return button;
  }));
  const word = HAS_TAGS ? "tag" : "class";
  byId("classes-title").textContent = state.classes.length === 0
    ? `No ${word} yet: press n and name the first one.`
    : found?.length === 0 ? `No ${word} has this in its name. Press Escape, then n for a new one.`
      : `${HAS_TAGS ? "Which tags?" : "Which class?"}${current?.likeliest ? LEGEND : ""}`;
  byId("find").hidden = state.classes.length <= MANY_CLASSES;
  scrollTo(byId("classes").querySelector(".found") ?? byId("classes").querySelector(".likeliest"));
  const offered = HAS_TAGS ? choice.list().join(", ") || "none of them" : likeliest;
  byId("accept").disabled = HAS_TAGS ? current === null || state.classes.length === 0
    : likeliest === undefined;
  byId("accept").title = offered ?? "";
  byId("accept").querySelector("b").textContent = offered ?? "";
  for (const id of ["skip", "new-class", "alike"]) byId(id).disabled = current === null;
  byId("new-class").hidden = state.order === "list"; // all grades are there
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
  choose(found[0]);
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
  const whole = refill, asked = epoch;
  refill = false;
  const held = [...unsaved, ...(current === null ? [] : [current.row]),
    ...(whole ? [] : queue.map(({ row }) => row))];
  passed.clear();
  filling = get("/api/queue", { user: user(), tab: TAB, n: AHEAD, held: held.join(",") });
  try {
    const cards = (await filling).filter(
      ({ row }) => !unsaved.has(row) && !passed.has(row) && row !== current?.row);
    if (whole || asked !== epoch) queue = [];
    const known = new Set(queue.map(({ row }) => row));
    if (asked === epoch) queue.push(...cards.filter(({ row }) => !known.has(row)));
    for (const card of queue) if (card.kind === "picture") pictureOf(card.row);
    if (current === null && queue.length > 0) show(queue.shift());
  } catch (error) {
    lost(error);
  } finally {
    filling = null;
  }
  if (refill) fill();
}

/** Choose anew what comes next; the item that is shown may be one to read without help now. */
function chooseAnew() {
  epoch += 1;
  queue = [];
  fill(true);
  renewCurrent(true);
}

/** Show the present posterior of an item at which someone looks for a while, or at once. */
async function renewCurrent(now = false) {
  const card = current;
  if (card === null || (!now && card.version === state.version)) return;
  if (!now && performance.now() - acted < IDLE_MS) {
    setTimeout(renewCurrent, IDLE_MS);
    return;
  }
  const renewed = await get(`/api/card/${card.row}`, { user: user() }).catch(() => null);
  if (renewed === null || current !== card) return;
  if (!now && performance.now() - acted < IDLE_MS) return;
  const isOther = renewed.likeliest?.name !== card.likeliest?.name;
  delete card.blind;
  Object.assign(card, renewed);
  if (HAS_TAGS ? choice.renew(card) : isOther) changed = performance.now();
  showMarks(card);
  showClasses();
  showNeighbours(card, colorOf, openRow);
}

async function openRow(row) {
  acted = performance.now();
  try {
    const card = await get(`/api/card/${row}`, { user: user() });
    if (current !== null && current.row !== row) queue.unshift(current);
    queue = queue.filter((other) => other.row !== row);
    show(card);
    byId("item-name").focus();
  } catch (error) {
    lost(error);
  }
}

// ---- what a person does

/** Give a class; or choose a tag, or take it from the choice, until the item is confirmed. */
function choose(name) {
  if (!HAS_TAGS) give(name);
  else if (current !== null) {
    acted = performance.now();
    choice.toggle(name);
    showClasses();
  }
}

/** Give the item that is shown a class, or tags; the next one follows at once. */
function give(label) {
  if (current === null) return;
  const card = current;
  passed.add(card.row);
  const share = card.classes.find(({ name }) => name === label)?.probability ?? null;
  unsaved.add(card.row);
  next();
  say(`${card.id}: ${HAS_TAGS ? label.join(", ") || "none of them" : label}`);
  const disputed = Object.keys(card.disputed ?? {}).length > 0;
  const kind = card.blind ? "blind" : disputed ? "decision" : "label";
  send([card.row], label, [share], card.version, kind, () => {
    card.label = null;
    queue.unshift(card);
  });
}

function send(rows, label, probabilities, version, kind, onFailure) {
  const body = { user: user(), rows, label, probabilities, version, kind };
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
  if (byId("accept").disabled) return;
  if (performance.now() - changed > REACTION_MS) give(HAS_TAGS ? choice.list() : current.likeliest.name);
  else say(`The likeliest ${HAS_TAGS ? "tags have" : "class has"} just changed; accept again.`);
}

function skip() {
  if (current === null) return;
  const { row, blind } = current;
  unsaved.add(row);
  passed.add(row);
  next();
  say("Skipped; the item comes again later.");
  sending = sending.then(() => post("/api/skip", { user: user(), rows: [row] }).catch(lost))
    .finally(() => {
      unsaved.delete(row);
      if (blind === "audit") fill(true); // it comes after the others of the audit
    });
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
  if (current === null || state.order === "list") return;
  byId("class-name").value = "";
  byId("class-dialog").showModal();
}

byId("class-dialog").querySelector("form").addEventListener("submit", () => {
  const name = byId("class-name").value.trim();
  if (name === "") return;
  if (HAS_TAGS) {
    if (/[;|]/.test(name)) return alarm("A tag has no ; and no | in its name.");
    if (classes().includes(name)) return choice.has(name) || choose(name);
    choice.add(name);
    state.classes = choice.offered(state.classes);
    showClasses();
    return;
  }
  if (!classes().includes(name)) state.classes.push({ name, count: 0 });
  give(name);
});

// ---- items together, notes and flags

/** Label several items, of which small views were shown, as one act. */
function giveTogether(items, label) {
  const rows = items.map(({ row }) => row);
  const shares = items.map(({ likeliest }) => (likeliest?.name === label ? likeliest.probability : null));
  for (const row of rows) {
    unsaved.add(row);
    passed.add(row);
  }
  queue = queue.filter(({ row }) => !unsaved.has(row));
  send(rows, label, shares, current?.version ?? null, "label", () => fill(true));
  say(`${rows.length} items: ${label}`);
  if (current !== null && unsaved.has(current.row)) next();
}

const { openAlike, openSearch, openPreview } = findingDialogs({
  state: () => state, current: () => current, classes, colorOf, openRow, giveTogether, lost,
});

function remark(path, body) {
  const card = current;
  if (card === null) return;
  sending = sending.then(async () => {
    try {
      Object.assign(card, await post(path, { user: user(), rows: [card.row], ...body }));
      if (current === card) showRemarks(card);
    } catch (error) {
      lost(error);
    }
  });
}

function flag() {
  if (current !== null) remark("/api/flag", { on: !(current.flags ?? []).includes(user()) });
}

function note() {
  if (current === null) return;
  byId("note-text").value = current.notes?.[user()] ?? "";
  byId("note-dialog").showModal();
}

byId("note-dialog").querySelector("form").addEventListener("submit", () => {
  remark("/api/note", { text: byId("note-text").value });
});

function showRemarks(card) {
  const notes = Object.entries(card?.notes ?? {}), flags = card?.flags ?? [];
  byId("notes").hidden = notes.length === 0;
  byId("notes").textContent = notes.map(([who, text]) => `${who}: ${text}`).join("\n");
  byId("item-flag").hidden = flags.length === 0;
  byId("item-flag").textContent = `flagged by ${flags.join(", ")}`;
  byId("flag").setAttribute("aria-pressed", String(flags.includes(user())));
  const disputed = Object.entries(card?.disputed ?? {});
  byId("disputed").hidden = disputed.length === 0;
  byId("disputed").textContent = `${disputed.map(([who, label]) => `${who}: ${worded(label)}`).join(" · ")}. `
    + (HAS_TAGS ? "What you confirm decides." : "The class that you give decides.");
  for (const id of ["note", "flag"]) byId(id).disabled = card === null;
}

/** Fetch the items about which people disagree, and show them one after the other. */
async function decide() {
  try {
    const held = new Set([...unsaved, current?.row]);
    const rows = state.disagreements.map(({ row }) => row).filter((row) => !held.has(row));
    const cards = await Promise.all(rows.map((row) => get(`/api/card/${row}`, { user: user() })));
    const open = cards.filter(({ disputed }) => Object.keys(disputed ?? {}).length > 0);
    if (open.length === 0) return;
    if (current !== null) queue.unshift(current);
    queue = [...open, ...queue.filter(({ row }) => !rows.includes(row))];
    next();
    byId("item-name").focus({ preventScroll: true });
  } catch (error) {
    lost(error);
  }
}

byId("decide").addEventListener("click", decide);
byId("people-right").addEventListener("click", async () => {
  try {
    state.accuracies = await post("/api/accuracies", { user: user() });
    showPeople(state);
  } catch (error) {
    lost(error);
  }
});

// ---- keys and buttons

function findClass() {
  if (state.classes.length > MANY_CLASSES) byId("class-filter").focus();
}

const actions = {
  [HAS_TAGS ? "enter" : " "]: accept, s: skip, u: undo, n: newClass, f: findClass, "/": openSearch,
  ".": note, "!": flag, g: HAS_TAGS ? () => say("Look-alikes have one class; items with tags are "
    + "confirmed one by one.") : openAlike,
};
const buttons = {
  accept, skip, undo, "new-class": newClass, alike: openAlike, search: openSearch, note, flag,
};
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
  const presses = event.key === " " || event.key === "Enter";
  if (writes || (presses && target.closest("button, a, summary"))) return;
  const key = event.key.toLowerCase(), at = keysOf(classes()).indexOf(key);
  if (Object.hasOwn(actions, key)) actions[key]();
  else if (at >= 0) choose(state.classes[at].name);
  else return;
  event.preventDefault();
});

if (HOSTED) {
  byId("log-out").addEventListener("click", async () => {
    await post("/logout", {}).catch(() => null);
    location.assign("/");
  });
} else {
  byId("user").addEventListener("change", () => {
    remembered("user", user());
    chooseAnew();
  });
}

// ---- news

const told = (text) => {
  say(text);
  chooseAnew();
};
const map = mapPanel(() => state, openRow, told, openPreview, lost);
const showAudit = auditPanel(user, told, lost);
showGuidelines().catch(lost);

function lost(error) {
  if (error.status === 403) {
    alarm(HOSTED ? "You are logged out. Load the page again to log in."
      : "This page has a new address. Open the one that graphuq printed.");
  } else alarm(error.status ? error.message : "No connection: is graphuq still running?");
}

function showState() {
  byId("progress").max = Math.max(1, state.n_items);
  byId("progress").value = state.n_labelled;
  byId("counts").textContent = `${state.n_labelled} of ${state.n_items.toLocaleString("en")} labelled`;
  const renewal = byId("renewal");
  renewal.className = `chip ${state.failure ? "bad" : state.busy ? "busy" : ""}`;
  renewal.textContent = state.failure ? "no new posterior"
    : !state.ready ? state.stage || "building the graph" : state.busy ? "renewing" : "up to date";
  renewal.title = state.notes.join("\n");
  if (state.failure) alarm(`${state.failure} Labels are stored.`);
  if (state.restored > restored) {
    alarm(`The file of labels was replaced; ${state.restored - restored} labels that it lacked `
      + "were written again.");
  }
  restored = state.restored;
  showErrors(state);
  showReview(state, colorOf, openRow);
  showAudit(state.audit);
  showPeople(state);
}

async function follow() {
  for (;;) {
    try {
      const news = await get("/api/state", { user: user(), tab: TAB, after: String(state.revision) });
      const renewed = news.version !== state.version || news.ready !== state.ready;
      const queued = news.queued && (renewed || !state.queued);
      const wished = news.revision !== state.revision;
      const before = classes().join("\n");
      const n_audits = state.audit?.audits.length ?? news.audit.audits.length;
      const drawn = news.audit.audits.length > n_audits; // by anybody
      state = HAS_TAGS ? { ...news, classes: choice.offered(news.classes) } : news;
      showState();
      if (classes().join("\n") !== before) showClasses();
      if (current === null && queue.length === 0) show(null);
      if (drawn) chooseAnew();
      else if (renewed) renewCurrent();
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
