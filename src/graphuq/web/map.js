/**
 * A map of points on a canvas: zoom, pan, hover, lasso and keyboard; for 100,000 points and more.
 *
 *   const map = createMap(canvas, { x, y, color, palette }, { onHover, onClick, onLasso });
 *
 * The canvas takes its size and background from CSS. Points are painted into an array of pixels,
 * so a frame of 50,000 points takes a few milliseconds. No text of the data reaches the page
 * through this script: the handlers get indices of points.
 */

import {
  certaintyPalette, classPalette, discStamp, gridIndex, inPolygon, packed, rgb, spanOf, unitCoordinates,
} from "./points.js";

export { certaintyPalette, classPalette };

const DRAG_PX = 4; // a shorter movement of the pointer is a click
const PICK_PX = 12; // largest distance from the pointer to the point under it
const MAX_ZOOM = 2000;
const MARGIN_PX = 14; // from the outermost points to the border
/**
 * Draw a map and make it interactive.
 *
 * data:
 *   x, y      coordinates, arrays of n numbers
 *   color     n indices of the palette
 *   palette   {light, dark}, arrays of "#rrggbb"; `classPalette`, `certaintyPalette` or others
 *   emphasis  indices of points with an outline, such as the labelled ones (optional)
 *   label     what the canvas shows, for screen readers (optional)
 *   square    whether points are pixels of a picture: one unit wide, or more if they are a sample
 *   next      indices of points that are marked with the accent colour (optional)
 *   wheel     "always", or "focus": the wheel zooms only after a click into the map (optional)
 * handlers, all optional:
 *   onHover(i, {x, y, byKeyboard})  the point under the pointer, or -1; x, y in CSS pixels
 *   onClick(i, event)               i is -1 beside all points
 *   onLasso(indices)                Int32Array of the points in the lasso; empty clears
 * Keys: arrows to the next point, Enter to click, + and − zoom, 0 shows all, S selects what is
 * in view, Escape clears the selection.
 *
 * Returns methods: setColor(color, palette), setVisible(mask or null), setSelected(indices),
 * setEmphasis(indices), setNext(indices), setMode("pan" or "lasso"), zoomBy(factor), reset(), focusOn(i),
 * position(i), selectView(), redraw(), destroy().
 */
export function createMap(canvas, data, handlers = {}) {
  const ctx = canvas.getContext("2d", { alpha: false });
  const n = data.x.length, x = unitCoordinates(data.x), y = unitCoordinates(data.y);
  const grid = gridIndex(x, y), span = data.square ? [spanOf(data.x), spanOf(data.y)] : null;
  const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = { color: data.color, palette: data.palette ?? classPalette(10) };
  const view = { zoom: 1, x: 0.5, y: 0.5 };
  let visible = null, selected = new Set(), emphasis = data.emphasis ?? [], next = data.next ?? [];
  let mode = "pan", current = -1, lasso = null, image = null, stale = true, frame = 0;
  let width = 1, height = 1, ratio = 1;

  const inner = () => [width, height].map((side) => Math.max(1, side - 2 * MARGIN_PX));
  /** Pixels of the canvas for the whole width and height; a picture keeps its proportions. */
  function scales() {
    const [w, h] = inner();
    if (span === null) return [view.zoom * w, view.zoom * h];
    const unit = view.zoom * Math.min(w / span[0], h / span[1]);
    return [unit * span[0], unit * span[1]];
  }
  const scaleX = () => scales()[0], scaleY = () => scales()[1];
  const position = (i) => ({
    x: (x[i] - view.x) * scaleX() + width / 2,
    y: height / 2 - (y[i] - view.y) * scaleY(),
  });
  const radius = () => {
    if (span !== null) return 3.5;
    const own = Math.min(5, Math.max(1.4, 4.5 * (400 / Math.max(1, n)) ** 0.22));
    return own * Math.min(2.5, view.zoom ** 0.25);
  };
  const isVisible = (i) => visible === null || visible[i] !== 0;

  // ---- painting

  function colors() {
    const palette = darkQuery.matches ? shown.palette.dark : shown.palette.light;
    const background = (getComputedStyle(canvas).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    const opaque = background.length >= 3 && background[3] !== 0;
    const back = opaque ? background.slice(0, 3) : darkQuery.matches ? [20, 23, 28] : [255, 255, 255];
    const channels = palette.map(rgb);
    return {
      back: packed(back),
      full: Uint32Array.from(channels, packed),
      pale: Uint32Array.from(channels, (c) => packed(c.map((v, j) => 0.13 * v + 0.87 * back[j]))),
      outline: packed(darkQuery.matches ? [240, 243, 247] : [25, 29, 36]),
      accent: packed(darkQuery.matches ? [255, 214, 79] : [214, 40, 110]),
    };
  }

  function paintPoints() {
    const w = canvas.width, h = canvas.height, used = colors();
    if (image === null || image.width !== w || image.height !== h) image = ctx.createImageData(w, h);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(used.back);
    const r = radius() * ratio, sx = scaleX() * ratio, sy = scaleY() * ratio;
    const put = (i, stamp, color) => {
      const px = Math.round((x[i] - view.x) * sx + w / 2), py = Math.round(h / 2 - (y[i] - view.y) * sy);
      const { reach, entries } = stamp;
      if (!(px >= reach && py >= reach && px < w - reach && py < h - reach)) return;
      const colorRB = color & 0xff00ff, colorG = color & 0xff00;
      for (let e = 0; e < entries.length; e += 3) {
        const at = (py + entries[e + 1]) * w + px + entries[e], a = entries[e + 2], old = pixels[at];
        const rb = (colorRB * a + (old & 0xff00ff) * (256 - a)) >>> 8;
        const g = (colorG * a + (old & 0xff00) * (256 - a)) >>> 8;
        pixels[at] = ((255 << 24) | (rb & 0xff00ff) | (g & 0xff00)) >>> 0;
      }
    };
    const side = span === null ? 0
      : (sx / span[0]) * Math.max(1, Math.sqrt((span[0] + 1) * (span[1] + 1) / n));
    const square = (i, color) => {
      const cx = (x[i] - view.x) * sx + w / 2, cy = h / 2 - (y[i] - view.y) * sy;
      const left = Math.max(0, Math.round(cx - side / 2)), right = Math.min(w, Math.round(cx + side / 2));
      const top = Math.max(0, Math.round(cy - side / 2)), bottom = Math.min(h, Math.round(cy + side / 2));
      if (left >= right) return;
      for (let row = top; row < bottom; row++) pixels.fill(color, row * w + left, row * w + right);
    };
    const disc = discStamp(r, 0.85);
    const point = span === null ? (i, color) => put(i, disc, color) : square;
    if (visible !== null) {
      for (let i = 0; i < n; i++) if (visible[i] === 0) point(i, used.pale[shown.color[i]]);
    }
    for (let i = 0; i < n; i++) if (isVisible(i)) point(i, used.full[shown.color[i]]);
    const solid = discStamp(r + 0.8 * ratio, 1), ring = discStamp(r + 2 * ratio, 1);
    for (const [points, color] of [[emphasis, used.outline], [next, used.accent], [selected, used.accent]]) {
      for (const i of points) {
        if (!isVisible(i)) continue;
        put(i, ring, color);
        put(i, solid, used.full[shown.color[i]]);
      }
    }
  }

  function draw() {
    frame = 0;
    if (stale) paintPoints();
    stale = false;
    ctx.putImageData(image, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.lineWidth = 2;
    ctx.strokeStyle = darkQuery.matches ? "#ffd64f" : "#d6286e";
    if (current >= 0) {
      const at = position(current);
      ctx.beginPath();
      ctx.arc(at.x, at.y, radius() + 5, 0, 2 * Math.PI);
      ctx.stroke();
    }
    if (lasso !== null && lasso.length > 2) {
      ctx.beginPath();
      for (let k = 0; k < lasso.length; k += 2) ctx.lineTo(lasso[k], lasso[k + 1]);
      ctx.closePath();
      ctx.globalAlpha = 0.12;
      ctx.fillStyle = ctx.strokeStyle;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.stroke();
    }
    ctx.setTransform(1, 0, 0, 1, 0, 0);
  }

  function redraw(repaint = true) {
    stale = stale || repaint;
    if (frame === 0) frame = requestAnimationFrame(draw);
  }

  function resize() {
    ratio = Math.min(3, window.devicePixelRatio || 1);
    width = Math.max(1, canvas.clientWidth);
    height = Math.max(1, canvas.clientHeight);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    stale = true;
    if (frame !== 0) cancelAnimationFrame(frame);
    draw(); // at once: setting the size has cleared the canvas
  }

  // ---- view and search

  function zoomAt(factor, px, py) {
    const zoom = Math.min(MAX_ZOOM, Math.max(0.5, view.zoom * factor));
    const ux = view.x + (px - width / 2) / scaleX(), uy = view.y - (py - height / 2) / scaleY();
    view.zoom = zoom;
    view.x = ux - (px - width / 2) / scaleX();
    view.y = uy + (py - height / 2) / scaleY();
    redraw();
  }

  function panBy(dx, dy) {
    view.x = Math.min(1.2, Math.max(-0.2, view.x - dx / scaleX()));
    view.y = Math.min(1.2, Math.max(-0.2, view.y + dy / scaleY()));
    redraw();
  }

  function pick(px, py) {
    const ux = view.x + (px - width / 2) / scaleX(), uy = view.y - (py - height / 2) / scaleY();
    const rx = PICK_PX / scaleX(), ry = PICK_PX / scaleY();
    let best = -1, least = PICK_PX * PICK_PX;
    for (let row = grid.cellOf(uy - ry); row <= grid.cellOf(uy + ry); row++) {
      const first = grid.start[row * grid.side + grid.cellOf(ux - rx)];
      const end = grid.start[row * grid.side + grid.cellOf(ux + rx) + 1];
      for (let k = first; k < end; k++) {
        const i = grid.order[k], at = position(i);
        const distance = (at.x - px) ** 2 + (at.y - py) ** 2;
        if (distance < least && isVisible(i)) [best, least] = [i, distance];
      }
    }
    return best;
  }

  function hover(i, byKeyboard = false) {
    if (i === current && !byKeyboard) return;
    current = i;
    redraw(false);
    handlers.onHover?.(i, { ...(i < 0 ? { x: 0, y: 0 } : position(i)), byKeyboard });
  }

  function pointsIn(polygon) {
    const found = [];
    for (let i = 0; i < n; i++) {
      const at = position(i);
      if (isVisible(i) && inPolygon(at.x, at.y, polygon)) found.push(i);
    }
    return Int32Array.from(found);
  }

  function select(indices) {
    selected = new Set(indices);
    redraw();
    handlers.onLasso?.(Int32Array.from(indices));
  }

  const selectView = () => select(pointsIn([0, 0, width, 0, width, height, 0, height]));

  /** The nearest visible point in a direction, within 45 degrees of it. */
  function neighbor(dx, dy) {
    const from = current < 0 ? { x: width / 2, y: height / 2 } : position(current);
    let best = -1, least = Infinity;
    for (let i = 0; i < n; i++) {
      if (i === current || !isVisible(i)) continue;
      const at = position(i), along = (at.x - from.x) * dx + (at.y - from.y) * dy;
      const across = Math.abs((at.x - from.x) * dy) + Math.abs((at.y - from.y) * dx);
      const distance = along + 2 * across;
      if (along > 0 && across <= along && distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  function moveTo(i) {
    if (i < 0) return;
    const at = position(i);
    if (at.x < 0 || at.y < 0 || at.x > width || at.y > height) [view.x, view.y] = [x[i], y[i]];
    redraw();
    hover(i, true);
  }

  // ---- events

  const pointers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const listeners = {
    pointerdown(event) {
      if (event.button !== 0) return;
      const at = place(event);
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at);
      moved = 0;
      lasso = pointers.size === 1 && (mode === "lasso" || event.shiftKey) ? [at.x, at.y] : null;
    },
    pointermove(event) {
      const at = place(event), old = pointers.get(event.pointerId);
      if (old === undefined) {
        hover(pick(at.x, at.y));
        return;
      }
      moved += Math.hypot(at.x - old.x, at.y - old.y);
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
        const before = Math.hypot(old.x - other.x, old.y - other.y);
        const factor = Math.hypot(at.x - other.x, at.y - other.y) / Math.max(1, before);
        zoomAt(factor, (at.x + other.x) / 2, (at.y + other.y) / 2);
      } else if (lasso !== null) {
        lasso.push(at.x, at.y);
        redraw(false);
      } else if (moved >= DRAG_PX) {
        panBy(at.x - old.x, at.y - old.y);
      }
      pointers.set(event.pointerId, at);
    },
    pointerup(event) {
      if (!pointers.delete(event.pointerId)) return;
      const polygon = lasso, at = place(event);
      lasso = null;
      if (moved < DRAG_PX) {
        hover(pick(at.x, at.y));
        handlers.onClick?.(current, event);
      } else if (polygon !== null) select(pointsIn(polygon));
      redraw(false);
    },
    pointercancel(event) {
      pointers.delete(event.pointerId);
      lasso = null;
      redraw(false);
    },
    pointerleave() {
      if (pointers.size === 0) hover(-1);
    },
    wheel(event) {
      const asked = event.ctrlKey || document.activeElement === canvas;
      if (data.wheel === "focus" && !asked) return;
      event.preventDefault();
      const at = place(event), lines = event.deltaMode === 1 ? 30 : 1;
      zoomAt(Math.exp(-0.0015 * lines * event.deltaY), at.x, at.y);
    },
    keydown(event) {
      const directions = {
        ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
      };
      const actions = {
        Enter: () => handlers.onClick?.(current, event),
        Escape: () => select([]),
        "+": () => zoomAt(1.5, width / 2, height / 2),
        "=": () => zoomAt(1.5, width / 2, height / 2),
        "-": () => zoomAt(1 / 1.5, width / 2, height / 2),
        0: reset,
        s: selectView,
      };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in directions) moveTo(neighbor(...directions[event.key]));
      else if (Object.hasOwn(actions, event.key)) actions[event.key]();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  };

  function reset() {
    Object.assign(view, { zoom: 1, x: 0.5, y: 0.5 });
    redraw();
  }

  function setMode(wanted) {
    mode = wanted;
    canvas.style.touchAction = mode === "lasso" ? "none" : "pan-y";
    canvas.style.cursor = mode === "lasso" ? "crosshair" : "grab";
  }

  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", data.label ?? `Map of ${n} points`);
  for (const [name, act] of Object.entries(listeners)) {
    canvas.addEventListener(name, act, { passive: false });
  }
  const repaint = () => redraw();
  darkQuery.addEventListener("change", repaint);
  const observer = new ResizeObserver(resize);
  observer.observe(canvas);
  setMode("pan");
  resize();

  return {
    position, reset, setMode, selectView, redraw,
    zoomBy: (factor) => zoomAt(factor, width / 2, height / 2),
    setColor(color, palette = shown.palette) {
      Object.assign(shown, { color, palette });
      redraw();
    },
    setVisible(mask) {
      visible = mask;
      if (current >= 0 && !isVisible(current)) hover(-1);
      redraw();
    },
    setSelected(indices) {
      selected = new Set(indices);
      redraw();
    },
    setEmphasis(indices) {
      emphasis = indices;
      redraw();
    },
    setNext(indices) {
      next = indices;
      redraw();
    },
    focusOn(i) {
      Object.assign(view, { zoom: Math.max(view.zoom, 3), x: x[i], y: y[i] });
      redraw();
      hover(i, true);
    },
    destroy() {
      observer.disconnect();
      darkQuery.removeEventListener("change", repaint);
      for (const [name, act] of Object.entries(listeners)) canvas.removeEventListener(name, act);
      if (frame !== 0) cancelAnimationFrame(frame);
    },
  };
}
