/** In the frame of a notebook: requests of the page go to the widget around it, and so do downloads. */

const waiting = new Map(), frame = Math.random().toString(36).slice(2);
let sent = 0;

window.graphuqRequest = (path, { method = "GET", body = null } = {}) => new Promise((done) => {
  const id = `${frame}-${++sent}`;
  waiting.set(id, done);
  window.parent.postMessage({ id, method, path, body }, "*");
});

window.addEventListener("message", ({ source, data }) => {
  if (source !== window.parent || !waiting.has(data.id)) return;
  const { status, type, content } = data;
  waiting.get(data.id)(new Response(content, { status, headers: { "Content-Type": type } }));
  waiting.delete(data.id);
});

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[download]");
  if (link === null || link.protocol === "blob:") return;
  event.preventDefault();
  const path = link.getAttribute("href"), answer = await window.graphuqRequest(path);
  const copy = document.createElement("a");
  copy.href = URL.createObjectURL(await answer.blob());
  copy.download = link.download || path.slice(1);
  copy.click();
});
