// Numbers as people read them.

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  let number = value || 0;
  while (Math.abs(number) >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${number.toFixed(unit && number < 100 ? 1 : 0)} ${units[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 1) return `${(value * 1000).toPrecision(3)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  if (value < 3600) return `${Math.floor(value / 60)}:${String(Math.floor(value % 60)).padStart(2, "0")} min`;
  return `${Math.floor(value / 3600)}:${String(Math.floor((value % 3600) / 60)).padStart(2, "0")} h`;
}

export const share = (value) => `${Math.round((value || 0) * 100)}%`;

export function median(values) {
  const sorted = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Ranges [[0, 0], [2, 7]] as "0, 2-7"; long lists are counted.
export function ranks(ranges, others = []) {
  const parts = ranges.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).concat(others);
  return parts.length > 12 ? `${parts.slice(0, 12).join(", ")} and ${parts.length - 12} more` : parts.join(", ");
}
