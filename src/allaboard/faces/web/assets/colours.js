// Colours of what ranks do: background and ink. The letter says the same without colour.

const COLOURS = {
  starting: ["#9ec5fe", "#05244d"], importing: ["#86b7fe", "#05244d"], "own-code": ["#7fdbda", "#043b3a"],
  "at-gate": ["#d0a9f5", "#2e0a52"], joining: ["#c29ffa", "#2e0a52"], joined: ["#9fe0e0", "#043b3a"],
  training: ["#57c26d", "#04290d"], waiting: ["#f5c542", "#3d2c00"], checkpoint: ["#5ab4d6", "#042c3b"],
  evaluation: ["#78c8e6", "#042c3b"], serving: ["#8fd694", "#04290d"], stopped: ["#d63031", "#ffffff"],
  leaving: ["#b6c2d1", "#1b1f24"], done: ["#c9d1d9", "#1b1f24"], ended: ["#8b949e", "#0d1117"],
  failed: ["#b00020", "#ffffff"], lost: ["#7a0f5a", "#ffffff"],
};
const SEVERITY = ["failed", "lost", "stopped", "waiting", "own-code", "joining", "at-gate", "starting", "importing"];

export const names = new Map(); // letter -> name
export function setLegend(legend) {
  for (const [letter, name] of legend) names.set(letter, name);
}
export const colourOf = (letter) => COLOURS[names.get(letter)] || ["#6e7781", "#ffffff"];

// The letter of a group of ranks: that of the one which most deserves a look.
export function worst(letters) {
  const ordered = [...letters].sort((a, b) => rankOf(a) - rankOf(b));
  return ordered[0] || " ";
}
function rankOf(letter) {
  const place = SEVERITY.indexOf(names.get(letter));
  return place < 0 ? SEVERITY.length : place;
}

// Dark blue to yellow (cividis, which the colour-blind read as well); value from 0 to 1.
const SCALE = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
export function scale(value) {
  const place = Math.max(0, Math.min(1, value)) * (SCALE.length - 1);
  const low = SCALE[Math.floor(place)];
  const high = SCALE[Math.ceil(place)];
  const part = place - Math.floor(place);
  return `rgb(${low.map((c, i) => Math.round(c + (high[i] - c) * part)).join(",")})`;
}
