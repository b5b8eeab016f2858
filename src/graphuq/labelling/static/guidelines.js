/** Guidelines beside the item: headings, lists, bold, italic and code of Markdown, only as text. */

import { byId, el, get } from "./elements.js";

const MARKS = /(\*\*[^*]+\*\*|\*[^*\s][^*]*\*|`[^`]+`)/;

function inline(text) {
  return text.split(MARKS).map((part) => {
    if (/^\*\*.+\*\*$/.test(part)) return el("b", { textContent: part.slice(2, -2) });
    if (/^\*.+\*$/.test(part)) return el("em", { textContent: part.slice(1, -1) });
    if (/^`.+`$/.test(part)) return el("code", { textContent: part.slice(1, -1) });
    return part;
  });
}

/** Return the elements of a text: each block of lines is a heading, a list or a paragraph. */
export function blocksOf(text) {
  const blocks = [];
  let list = null;
  for (const line of text.split(/\r?\n/)) {
    const heading = /^(#{1,4})\s+(.*)$/.exec(line), item = /^\s*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    if (heading) {
      blocks.push(el("h3", {}, ...inline(heading[2])));
      list = null;
    } else if (item) {
      const kind = /^\s*\d/.test(line) ? "ol" : "ul";
      if (list?.tagName !== kind.toUpperCase()) blocks.push(list = el(kind));
      list.append(el("li", {}, ...inline(item[1])));
    } else if (line.trim() === "") {
      list = null;
      blocks.push(null);
    } else if (list !== null && /^\s/.test(line)) {
      list.lastChild.append(" ", ...inline(line.trim()));
    } else {
      const before = blocks.at(-1);
      list = null;
      if (before?.tagName === "P") before.append(" ", ...inline(line.trim()));
      else blocks.push(el("p", {}, ...inline(line.trim())));
    }
  }
  return blocks.filter((block) => block !== null);
}

export async function showGuidelines() {
  if (byId("guidelines") === null) return;
  const { text } = await get("/api/guidelines");
  byId("guidelines").replaceChildren(...blocksOf(text));
}
