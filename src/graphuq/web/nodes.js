/** The nodes of a page: decoded columns, filters, orders and CSV. No function touches a page. */

const N_CELLS = 60000; // of probabilities, as in Python's `cells_of`
const ARRAYS = { Uint8: Uint8Array, Uint16: Uint16Array, Uint32: Uint32Array };

/** An array of unsigned integers, which Python packed. */
export function unpack({ type, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return new ARRAYS[type](bytes.buffer);
}

/** Numbers and words of n nodes, from the JSON of the page. */
export function decodeNodes(payload) {
  const columns = {};
  for (const [name, values] of Object.entries(payload.columns)) columns[name] = unpack(values);
  const nTop = payload.n_top, unknown = payload.unknown, n = columns.node.length, classes = payload.classes;
  const id = (i) => (payload.ids === null ? String(columns.node[i]) : payload.ids[i]);
  const label = (i) => columns.top[i * nTop];
  /** The middle of a cell, which is rounded to four digits or fewer as Python rounds its number. */
  const probabilityAt = (place) => (columns.probability[place] + 0.5) / N_CELLS;
  const probability = (i) => probabilityAt(i * nTop);
  const given = (i) => columns.given[i];
  const truth = (i) => (columns.truth === undefined ? unknown : columns.truth[i]);
  const isLabelled = (i) => given(i) !== unknown;
  const isWrong = (i) => truth(i) !== unknown && truth(i) !== label(i);
  const top = (i) => Array.from({ length: nTop }, (_, k) => ({
    name: classes[columns.top[i * nTop + k]],
    code: columns.top[i * nTop + k],
    probability: probabilityAt(i * nTop + k),
  }));
  const name = (code) => (code === unknown ? "" : classes[code]);
  return {
    n, classes, columns, nTop, id, label, probability, given, truth, isLabelled, isWrong, top, name,
    hasTruth: columns.truth !== undefined,
    hasEvidence: (i) => columns.evidence[i] !== 0,
    /** 0 if all classes are equally probable, 1 if one is certain. */
    certainty: (i) => Math.max(0, (classes.length * probability(i) - 1) / (classes.length - 1)),
    status(i) {
      if (isLabelled(i)) return `given: ${name(given(i))}`;
      if (!columns.evidence[i]) return "no evidence";
      if (isWrong(i)) return `wrong: ${name(truth(i))}`;
      return truth(i) === unknown ? "inferred" : "right";
    },
  };
}

/**
 * Indices of the nodes that pass all filters.
 *
 * filters: text (in the name of node or class), code (a class, or -1), status ("all",
 * "unlabelled", "labelled", "wrong", "no evidence"), most (largest probability),
 * selection (a Set of indices, or null).
 */
export function filterNodes(nodes, { text, code, status, most, selection }) {
  const words = text.trim().toLowerCase(), found = [];
  const inClass = nodes.classes.map((name) => name.toLowerCase().includes(words));
  const passes = {
    unlabelled: (i) => !nodes.isLabelled(i),
    labelled: nodes.isLabelled,
    wrong: (i) => nodes.isWrong(i) && !nodes.isLabelled(i),
    "no evidence": (i) => !nodes.hasEvidence(i),
  }[status] ?? (() => true);
  for (let i = 0; i < nodes.n; i++) {
    if (code >= 0 && nodes.label(i) !== code) continue;
    if (nodes.probability(i) > most) continue;
    if (selection !== null && !selection.has(i)) continue;
    if (!passes(i)) continue;
    if (words && !inClass[nodes.label(i)] && !nodes.id(i).toLowerCase().includes(words)) continue;
    found.push(i);
  }
  return found;
}

/** Sort indices in place by a column ("id", "class", "probability", "status"). */
export function sortNodes(nodes, indices, column, descending) {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const byText = (text) => {
    const keys = new Map(indices.map((i) => [i, text(i)]));
    return (a, b) => collator.compare(keys.get(a), keys.get(b));
  };
  const compare = {
    id: () => byText(nodes.id),
    class: () => byText((i) => nodes.name(nodes.label(i))),
    status: () => byText(nodes.status),
    probability: () => (a, b) => nodes.probability(a) - nodes.probability(b),
  }[column]();
  const sign = descending ? -1 : 1;
  return indices.sort((a, b) => sign * compare(a, b) || a - b);
}

/** A text that a spreadsheet does not run, as `marked` of Python's `spreadsheets` returns it. */
function marked(text) {
  const bare = text.replace(/^'+/, "");
  return /^[=+\-@\t\r\n＝＋－＠]/.test(bare) && Number.isNaN(Number(bare)) ? `'${text}` : text;
}

/** Nodes as CSV (RFC 4180). */
export function csvOf(nodes, indices) {
  const quote = (value) => {
    const safe = marked(value);
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const rows = [["id", "label", "probability", "second_label", "second_probability", "given_label"]];
  for (const i of indices) {
    const [first, second] = nodes.top(i);
    rows.push([
      nodes.id(i), first.name, first.probability.toFixed(4), second.name,
      second.probability.toFixed(4), nodes.name(nodes.given(i)),
    ]);
  }
  return rows.map((row) => row.map(quote).join(",") + "\r\n").join("");
}
