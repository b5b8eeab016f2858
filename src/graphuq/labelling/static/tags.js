/** Items with several classes: which tags are chosen for the item that is shown. */

import { HAS_TAGS } from "./elements.js";

/** The tags of a label, such as comedy;drama; of ; alone there are none. */
export const tagsIn = (label) => label.split(";").filter((name) => name !== "");

/** A label as the page writes it. */
export function worded(label) {
  if (!HAS_TAGS || !label) return label;
  return tagsIn(label).join(", ") || "none of them";
}

/** The choice of tags of one item, which follows the posterior until somebody changes it. */
export class Choice {
  #names = new Set();
  #isOwn = false;
  #added = new Set(); // tags that were named here and that no stored label has yet

  /** Begin with the tags of a card: those that it has, or else the likely ones. */
  begin(card) {
    this.#isOwn = false;
    this.#take(card);
  }

  /** Take a new posterior, unless somebody chose; return whether the choice is another one. */
  renew(card) {
    if (this.#isOwn) return false;
    const before = this.list().join(";");
    this.#take(card);
    return this.list().join(";") !== before;
  }

  #take(card) {
    const likely = (card?.classes ?? []).filter(({ probability }) => probability > 0.5);
    this.#names = new Set(card?.label ? tagsIn(card.label) : likely.map(({ name }) => name));
  }

  has(name) {
    return this.#names.has(name);
  }

  list() {
    return [...this.#names].sort();
  }

  toggle(name) {
    this.#isOwn = true;
    if (!this.#names.delete(name)) this.#names.add(name);
  }

  /** Choose a tag that is offered from now on. */
  add(name) {
    this.#isOwn = true;
    this.#names.add(name);
    this.#added.add(name);
  }

  /** Classes of a state, with those that were added here. */
  offered(classes) {
    const known = new Set(classes.map(({ name }) => name));
    for (const name of known) this.#added.delete(name);
    return [...classes, ...[...this.#added].map((name) => ({ name, count: 0 }))];
  }
}
