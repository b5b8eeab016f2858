/** The widget in a notebook: a frame with the labelling page, whose requests go to the kernel. */

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "Labelling page";
  frame.setAttribute("sandbox", "allow-scripts allow-forms allow-modals allow-downloads");
  Object.assign(frame.style, { width: "100%", height: `${model.get("height")}px`, border: "0" });
  const ask = (event) => {
    if (event.source === frame.contentWindow) model.send(event.data);
  };
  const answer = (message, [view]) => {
    const content = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
    frame.contentWindow?.postMessage({ ...message, content }, "*");
  };
  window.addEventListener("message", ask);
  model.on("msg:custom", answer);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    window.removeEventListener("message", ask);
    model.off("msg:custom", answer);
  };
}

export default { render };
