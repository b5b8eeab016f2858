/** The panel that says whether to stop: audits by random samples, and what they found. */

import { byId, el, percent, post } from "./elements.js";

const exact = (share) => `${(100 * share).toFixed(1).replace(/\.0$/, "")}\u00a0%`;

function lineOf({ time, n_drawn, n_left, result, expected }) {
  const when = `${time.slice(0, 16).replace("T", " ")} UTC`;
  const model = expected === null ? "" : ` The model expected ${percent(expected)}.`;
  if (result === null) return `${when}: 0 of ${n_drawn} answered.${model}`;
  const { n_answers, n_right, accuracy, lower, upper } = result;
  const so = n_left > 0 ? `, ${n_left} to come` : "";
  return `${when}: ${n_right} of ${n_answers} right${so}. Accuracy ${exact(accuracy)} `
    + `(90\u00a0%: ${exact(lower)} to ${exact(upper)}).${model}`;
}

/** Return a function that shows the state of audits. */
export function auditPanel(user, say, lost) {
  let offered = null;

  async function act(path, body, told) {
    try {
      say(told(await post(path, { user: user(), ...body })));
    } catch (error) {
      if (error.status === 400) say(error.message);
      else lost(error);
    }
  }

  byId("audit-draw").addEventListener("click", () => act("/api/audit",
    { n: Number(byId("audit-size").value) },
    ({ n }) => `${n} random items come next, without help. Their answers judge the model.`));
  byId("audit-end").addEventListener("click", () => act("/api/end_audit", {},
    ({ n }) => `The audit has ended; ${n} of its items have no answer.`));

  return (audit) => {
    if (offered !== audit.size) byId("audit-size").value = audit.size;
    offered = audit.size;
    byId("advice").textContent = audit.advice;
    byId("audits").replaceChildren(...audit.audits.slice(-3).reverse()
      .map((found) => el("li", { className: "quiet", textContent: lineOf(found) })));
    const isOpen = audit.open !== null;
    byId("audit-end").hidden = !isOpen;
    byId("audit-draw").hidden = isOpen;
    byId("audit-size").closest("label").hidden = isOpen;
  };
}
