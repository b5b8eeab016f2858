/** What the pages of the reports share: pictures of nodes, buttons and legends. */

import { element } from "./table.js";

/** A function that returns a canvas with the picture of a node, or null if the sheet has none. */
export function thumbnailsOf(sheet) {
  const placeInSheet = new Map();
  const sheetImage = new Image();
  if (sheet !== null) {
    const order = Uint32Array.from(
      new Uint32Array(Uint8Array.from(atob(sheet.nodes.data), (c) => c.charCodeAt(0)).buffer),
    );
    order.forEach((node, place) => placeInSheet.set(node, place));
    sheetImage.src = `data:image/png;base64,${sheet.png}`;
  }
  return (i, className = "thumb") => {
    if (!placeInSheet.has(i)) return null;
    const { width, height, columns } = sheet, place = placeInSheet.get(i);
    const canvas = element("canvas", { className, width, height, "aria-hidden": "true" });
    const left = (place % columns) * width, top = Math.floor(place / columns) * height;
    const put = () => {
      canvas.getContext("2d").drawImage(sheetImage, left, top, width, height, 0, 0, width, height);
    };
    if (sheetImage.complete) put();
    else sheetImage.addEventListener("load", put, { once: true });
    return canvas;
  };
}

/** A strip of colours, for a legend. */
export function colorRamp(colors) {
  const ramp = element("span", { className: "ramp", "aria-hidden": "true" });
  ramp.style.background = `linear-gradient(90deg, ${colors.join(",")})`;
  return ramp;
}

export function connectZoom(map) {
  const press = (id, act) => document.getElementById(id).addEventListener("click", act);
  press("zoom-in", () => map.zoomBy(1.6));
  press("zoom-out", () => map.zoomBy(1 / 1.6));
  press("show-all", () => map.reset());
}

/** Show what needs this script, and hide what stands in its place without one. */
export function showLiveParts() {
  for (const part of document.querySelectorAll(".live")) part.hidden = false;
  for (const part of document.querySelectorAll(".still")) part.hidden = true;
}

export async function copy(text, button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { className: "off-screen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = words), 1500);
}
