/** Dialogs that find items, and label several of them together after a look at each. */

import { HAS_TAGS, byId, dot, el, faces, get, percent, smallView } from "./elements.js";
import { worded } from "./tags.js";

const SURE = 0.9; // probability from which an item is marked in advance
const SHARES = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100]; // of a probability, in %
const PAUSE_MS = 200; // without a key, after which a text is searched

export function findingDialogs({ state, current, classes, colorOf, openRow, giveTogether, lost }) {
  let items = new Map(); // small views in the preview, by row
  let hits = []; // small views in the search
  let about = ""; // what the preview shows
  let renew = () => {}; // shows the preview of another class

  // ---- preview

  const marked = () => [...byId("alikes").querySelectorAll(":checked")].map(({ value }) => Number(value));

  function count() {
    const n = marked().length;
    byId("alike-accept").disabled = n === 0;
    byId("alike-accept").textContent = `Label ${n} as ${byId("alike-class").value}`;
    byId("alike-all").disabled = n === items.size;
  }

  function box(item, checked) {
    const input = el("input", { type: "checkbox", checked, value: String(item.row) });
    input.addEventListener("change", count);
    const { label, likeliest } = item;
    const share = likeliest ? `${likeliest.name}: ${percent(likeliest.probability)}` : item.id;
    return el("li", {}, el("label", {}, ...faces(item),
      el("span", {}, input, ` ${label ? `labelled ${label}` : share}`)));
  }

  /** Show views with a box each; those that the model is sure of are marked. */
  function showViews(views, first) {
    const label = byId("alike-class").value;
    const isSure = ({ label: given, likeliest }) => !given && likeliest?.name === label
      && likeliest.probability >= SURE;
    const rank = (item) => (item === first ? 0 : isSure(item) ? 1 : 2);
    const sorted = [...views].sort((a, b) => rank(a) - rank(b));
    items = new Map(sorted.map((item) => [item.row, item]));
    byId("alikes").replaceChildren(...sorted.map((item) => box(item, item === first || isSure(item))));
    byId("alike-note").textContent = `${about}. Marked are those without a label of which `
      + `${label} has at least ${percent(SURE)}. Mark others that you recognise, and take the mark `
      + "from each one of another class. Undo takes all of them back together.";
    count();
  }

  function open(title, chosen) {
    byId("alike-class").replaceChildren(...classes().map((name) => el("option", {
      value: name, textContent: name, selected: name === chosen,
    })));
    byId("alike-title").textContent = title;
    byId("alikes").replaceChildren();
    byId("alike-dialog").showModal();
  }

  async function showAlike() {
    const card = current();
    const found = await get(`/api/alike/${card.row}`, { label: byId("alike-class").value });
    showViews([card, ...found], card);
  }

  function openAlike() {
    const card = current();
    if (card === null || state().classes.length === 0) return;
    about = "The item and those most similar to it";
    open("Look-alikes", card.label ?? card.likeliest?.name);
    renew = () => showAlike().catch(lost);
    renew();
  }

  /** Show views of items that were chosen, before they are labelled together. */
  function openPreview(views, what) {
    if (views.length === 0 || state().classes.length === 0) return;
    const names = views.map(({ label, likeliest }) => label ?? likeliest?.name);
    const times = (name) => names.filter((other) => other === name).length;
    about = what;
    open("Label together", [...new Set(names)].sort((a, b) => times(b) - times(a))[0]);
    renew = () => showViews(views, null);
    renew();
  }

  byId("alike-class").addEventListener("change", () => renew());
  byId("alike-all").addEventListener("click", () => {
    for (const input of byId("alikes").querySelectorAll("input")) input.checked = true;
    count();
  });
  byId("alike-accept").addEventListener("click", () => {
    const chosen = marked().map((row) => items.get(row)), label = byId("alike-class").value;
    byId("alike-dialog").close();
    giveTogether(chosen, label);
  });

  // ---- search

  const filters = {
    text: "query", label: "find-class", by: "find-by", state: "find-state", least: "find-least",
    most: "find-most", order: "find-order",
  };
  const usual = { least: "0", most: "1" };
  let asked = 0, timer = 0;

  function told({ id, label, likeliest }) {
    if (label) return [...(HAS_TAGS ? [] : [dot(colorOf(label))]), worded(label)];
    return [likeliest ? `${id} · ${worded(likeliest.name)}: ${percent(likeliest.probability)}` : id];
  }

  async function search() {
    const mine = ++asked;
    const given = Object.entries(filters).map(([name, id]) => [name, byId(id).value.trim()]);
    const set = Object.fromEntries(given.filter(([name, value]) => value !== (usual[name] ?? "")));
    const none = Object.keys(set).length === 0;
    try {
      const { views, n } = none ? { views: [], n: 0 } : await get("/api/search", set);
      if (mine !== asked) return;
      hits = views;
      byId("hits").replaceChildren(...views.map((item) => smallView(item, told(item),
        (row) => { byId("search-dialog").close(); openRow(row); })));
      byId("hits-note").textContent = none ? "" : `${n} found`
        + (n > views.length ? `; the first ${views.length} are shown` : "");
      byId("hits-label").disabled = views.length === 0 || state().classes.length === 0;
    } catch (error) {
      if (error.status !== 400) lost(error);
      else byId("hits-note").textContent = error.message;
    }
  }

  for (const [name, id] of Object.entries(filters)) {
    byId(id).addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, name === "text" || name === "by" ? PAUSE_MS : 0);
    });
  }
  for (const id of ["find-least", "find-most"]) {
    byId(id).append(...SHARES.map((share) => el("option", {
      value: String(share / 100), textContent: `${share} %`,
      selected: share === (id === "find-most" ? 100 : 0),
    })));
  }
  byId("hits-label").addEventListener("click", () => {
    byId("search-dialog").close();
    openPreview(hits, "The items that were found");
  });

  function openSearch() {
    const chosen = byId("find-class").value;
    byId("find-class").replaceChildren(el("option", { value: "", textContent: "all" }),
      ...classes().map((name) => el("option", {
        value: name, textContent: name, selected: name === chosen })));
    byId("people").replaceChildren(...(state().people ?? []).map((value) => el("option", { value })));
    byId("search-dialog").showModal();
    byId("query").select();
    search();
  }

  return { openAlike, openSearch, openPreview };
}
