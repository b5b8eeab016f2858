/** Colours, coordinates and search for points on a canvas. No function here touches a page. */

// After Petroff 2021 (arXiv:2107.02270): also those who cannot see red or green tell them apart.
const CLASS_COLORS = {
  light: ["#2f80cc", "#e76300", "#66c8cc", "#5a5e6b", "#bd1f01", "#b9ac70", "#832db6", "#ffa90e",
    "#94a4a2", "#a96b59"],
  dark: ["#5aa6ea", "#f58a3c", "#a8ecee", "#7b808f", "#d8402a", "#d3c98f", "#a45cd6", "#ffb52e",
    "#a9b7b5", "#b97c6a"],
};
const SECOND_TEN = { light: "#000000", dark: "#ffffff" }; // mixed into the colours after ten
const RAMP = {
  light: ["#c8501e", "#e0a15a", "#b9c4c9", "#6f9dc4", "#1f5f9e"],
  dark: ["#ff8a4c", "#d9a066", "#6d7880", "#5f95c4", "#7cc0ff"],
};

/** Colours of n classes for light and dark pages; they repeat after twenty. */
export function classPalette(n) {
  const colors = (theme) => Array.from({ length: n }, (_, k) => {
    const color = CLASS_COLORS[theme][k % 10];
    return k % 20 < 10 ? color : interpolate([color, SECOND_TEN[theme]], 5)[2];
  });
  return { light: colors("light"), dark: colors("dark") };
}

/** 256 colours from uncertain (0, orange) to certain (255, blue). */
export function certaintyPalette() {
  return { light: interpolate(RAMP.light, 256), dark: interpolate(RAMP.dark, 256) };
}

function interpolate(stops, n) {
  const channels = stops.map(rgb);
  return Array.from({ length: n }, (_, k) => {
    const place = (k / (n - 1)) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    const mixed = channels[left].map((c, j) => c + (place - left) * (channels[left + 1][j] - c));
    return "#" + mixed.map((c) => Math.round(c).toString(16).padStart(2, "0")).join("");
  });
}

export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** Pixels of a disc as offsets and coverages from 0 to 256. */
export function discStamp(radius, opacity) {
  const reach = Math.ceil(radius + 0.5), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const covered = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (covered > 0) found.push(dx, dy, Math.round(256 * opacity * covered));
    }
  }
  return { reach, entries: Int32Array.from(found) };
}

/** Largest difference of some coordinates, at least 1. */
export function spanOf(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return Math.max(1, high - low);
}

/** Coordinates in [0, 1]; points without finite coordinates are NaN, and never shown. */
export function unitCoordinates(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const width = high - low || 1;
  return Float32Array.from(values, (v) => (Number.isFinite(v) ? (v - low) / width : NaN));
}

/** Points by the cell of a square grid: those of cell c are order[start[c]] to order[start[c+1]-1]. */
export function gridIndex(x, y) {
  const side = Math.max(1, Math.ceil(Math.sqrt(x.length / 2)));
  const cellOf = (v) => Math.min(side - 1, Math.max(0, Math.floor(v * side)));
  const cell = new Int32Array(x.length).fill(-1), start = new Int32Array(side * side + 1);
  for (let i = 0; i < x.length; i++) {
    if (Number.isNaN(x[i]) || Number.isNaN(y[i])) continue;
    cell[i] = cellOf(y[i]) * side + cellOf(x[i]);
    start[cell[i] + 1]++;
  }
  for (let c = 0; c < side * side; c++) start[c + 1] += start[c];
  const next = start.slice(), order = new Int32Array(start[side * side]);
  for (let i = 0; i < x.length; i++) if (cell[i] >= 0) order[next[cell[i]]++] = i;
  return { side, cellOf, start, order };
}

/** Whether a point lies in a polygon [x0, y0, x1, y1, …], by the even-odd rule. */
export function inPolygon(px, py, polygon) {
  let inside = false;
  for (let i = 0, j = polygon.length - 2; i < polygon.length; j = i, i += 2) {
    const yi = polygon[i + 1], yj = polygon[j + 1];
    if (yi > py !== yj > py) {
      const crossing = polygon[i] + ((py - yi) / (yj - yi)) * (polygon[j] - polygon[i]);
      if (px < crossing) inside = !inside;
    }
  }
  return inside;
}
