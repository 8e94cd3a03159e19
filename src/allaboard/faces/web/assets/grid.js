// All ranks, or hosts, as cells of a canvas: up to 100,000.

import { colourOf, names, scale, worst } from "./colours.js";
import { byId, element, render, sized } from "./dom.js";
import { bytes, seconds, share } from "./figures.js";

const FORMATS = { step: String, step_s: seconds, waiting: share, memory_nbytes: bytes, cpu: (v) => v.toFixed(1) };
const MAX_HEIGHT = 420;

export class Grid {
  constructor(onSelect) {
    this.canvas = byId("grid");
    this.onSelect = onSelect;
    this.members = { names: [], ranks: [], hosts: [], host_of: [] };
    this.selected = -1;
    this.grouping = "rank";
    this.canvas.addEventListener("click", (event) => this.select(this.cellAt(event)));
    this.canvas.addEventListener("mousemove", (event) => {
      const cell = this.cellAt(event);
      this.canvas.title = cell >= 0 ? this.describe(cell) : "";
    });
    this.canvas.addEventListener("keydown", (event) => this.move(event));
    byId("grouping").addEventListener("change", (event) => {
      this.grouping = event.target.value;
      this.select(-1);
    });
    new ResizeObserver(() => this.draw()).observe(byId("grid-box"));
  }

  setMembers(members) {
    this.members = members;
    this.groups = members.hosts.map(() => []);
    members.host_of.forEach((host, index) => this.groups[host].push(index));
  }

  show(picture) {
    this.picture = picture;
    this.draw();
    this.showLegend();
    this.showSelected();
  }

  get count() {
    return this.grouping === "host" ? this.members.hosts.length : this.picture ? this.picture.letters.length : 0;
  }

  draw() {
    if (!this.picture || !this.count) return;
    const width = byId("grid-box").clientWidth;
    if (!width) return;
    let size = Math.min(26, Math.floor(Math.sqrt((width * MAX_HEIGHT) / this.count)));
    size = Math.max(size, 1);
    while (size > 1 && Math.ceil(this.count / Math.floor(width / size)) * size > MAX_HEIGHT) size -= 1;
    this.size = size;
    this.columns = Math.max(1, Math.floor(width / size));
    const rows = Math.ceil(this.count / this.columns);
    const context = sized(this.canvas, width, rows * size + 2);
    const gap = size >= 6 ? 1 : 0;
    const [low, high] = this.range();
    const awaited = new Set(this.picture.awaited.map(([index]) => index));
    context.font = `700 ${Math.floor(size * 0.6)}px ui-monospace, monospace`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let cell = 0; cell < this.count; cell += 1) {
      const x = (cell % this.columns) * size;
      const y = Math.floor(cell / this.columns) * size;
      const letter = this.letterOf(cell);
      const value = this.valueOf(cell);
      const [back, ink] = colourOf(letter);
      context.fillStyle = value === null ? back : scale(high > low ? (value - low) / (high - low) : 0);
      context.fillRect(x, y, size - gap, size - gap);
      if (size >= 12) {
        context.fillStyle = value === null ? ink : (high > low ? (value - low) / (high - low) : 0) > 0.55 ? "#000" : "#fff";
        context.fillText(letter, x + (size - gap) / 2, y + (size - gap) / 2 + 1);
      }
      const isAwaited = this.grouping === "rank" ? awaited.has(cell) : this.groups[cell].some((i) => awaited.has(i));
      if (isAwaited && size >= 4) this.frame(context, x, y, size - gap, "#d63031");
      if (cell === this.selected) this.frame(context, x, y, size - gap, getComputedStyle(document.body).color);
    }
    this.canvas.setAttribute("aria-label", `Grid of ${this.count} ${this.grouping}s: ${this.summary()}`);
  }

  frame(context, x, y, size, colour) {
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1, Math.min(3, size / 6));
    context.strokeRect(x + context.lineWidth / 2, y + context.lineWidth / 2, size - context.lineWidth, size - context.lineWidth);
  }

  letterOf(cell) {
    const letters = this.picture.letters;
    return this.grouping === "rank" ? letters[cell] : worst(new Set(this.groups[cell].map((i) => letters[i])));
  }

  // The number behind a cell's colour; of a host the highest of its ranks. null: coloured by activity.
  valueOf(cell) {
    const values = this.picture.metric ? this.picture.values : null;
    if (!values) return null;
    if (this.grouping === "rank") return values[cell] ?? null;
    const numbers = this.groups[cell].map((i) => values[i]).filter((v) => v !== null);
    return numbers.length ? numbers.reduce((a, b) => Math.max(a, b)) : null;
  }

  range() {
    const values = (this.picture.metric && this.picture.values) || [];
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return [low, high];
  }

  counts() {
    const counts = new Map();
    for (const letter of this.picture.letters) counts.set(letter, (counts.get(letter) || 0) + 1);
    return counts;
  }

  summary() {
    return [...this.counts()].map(([letter, count]) => `${count} ${names.get(letter)}`).join(", ");
  }

  showLegend() {
    const counts = [...this.counts()];
    const range = this.range();
    const { metric } = this.picture;
    render(byId("legend"), [metric, range, counts], () => {
      if (metric && range[1] >= range[0]) {
        return [0, 0.5, 1].map((part) => {
          const swatch = element("span", { className: "swatch" });
          swatch.style.background = scale(part);
          return element("li", {}, swatch, FORMATS[metric](range[0] + (range[1] - range[0]) * part));
        });
      }
      return counts.map(([letter, count]) => {
        const [back, ink] = colourOf(letter);
        const swatch = element("span", { className: "swatch", "aria-hidden": "true" }, letter);
        swatch.style.background = back;
        swatch.style.color = ink;
        return element("li", {}, swatch, `${names.get(letter)} ${count}`);
      });
    });
  }

  describe(cell) {
    const letter = this.letterOf(cell);
    const value = this.valueOf(cell);
    const figure = value === null ? "" : `, ${FORMATS[this.picture.metric](value)}`;
    if (this.grouping === "host") return `${this.members.hosts[cell]}: ${this.groups[cell].length} ranks, ${names.get(letter)}${figure}`;
    const host = this.members.hosts[this.members.host_of[cell]];
    return `${this.members.names[cell]} on ${host}: ${names.get(letter)}${figure}`;
  }

  showSelected() {
    const node = byId("selected");
    if (this.selected < 0 || this.selected >= this.count) return;
    const rank = this.grouping === "rank" && this.picture.selected;
    const details = [this.describe(this.selected)];
    if (rank) {
      if (rank.rank >= 0) details.push(`rank ${rank.rank}`);
      if (rank.pid) details.push(`pid ${rank.pid}`);
      if (rank.step) details.push(`step ${rank.step}`);
      if (rank.step_s) details.push(`${seconds(rank.step_s)} a step`);
      if (rank.operation) details.push(`in ${rank.operation} for ${seconds(rank.operation_s)}`);
      if (rank.waits_for) details.push(`waits for ${rank.waits_for.join(", ")}`);
      if (rank.awaited_by) details.push(`${rank.awaited_by} wait for it`);
      if (this.picture.selected_place) details.push(`at ${this.picture.selected_place}`);
      if (rank.memory_nbytes) details.push(bytes(rank.memory_nbytes));
      if (rank.gpu_memory_nbytes) details.push(`${bytes(rank.gpu_memory_nbytes)} on GPUs`);
      const memory = rank.device_memory;
      if (memory) {
        const limit = memory.limit_nbytes ? ` of ${bytes(memory.limit_nbytes)}` : "";
        details.push(`tensors hold ${bytes(memory.used_nbytes)}${limit}`);
        if (memory.peak_nbytes) details.push(`${bytes(memory.peak_nbytes)} at most`);
      }
      if (rank.cpu) details.push(`${rank.cpu.toFixed(1)} cores`);
      if (rank.queued >= 0.05) details.push(`waits for a core ${share(rank.queued)}`);
      if (rank.threads) details.push(`${rank.threads} threads`);
      if (rank.open_files) details.push(`${rank.open_files} open files`);
      if (rank.loss !== undefined && rank.loss !== null) details.push(`loss ${Number(rank.loss.toPrecision(4))}`);
      if (rank.end) details.push(rank.end);
    }
    render(node, details, () => [details.join(" · ")]);
  }

  cellAt(event) {
    if (!this.size) return -1;
    const column = Math.floor(event.offsetX / this.size);
    const cell = Math.floor(event.offsetY / this.size) * this.columns + column;
    return column < this.columns && cell < this.count ? cell : -1;
  }

  select(cell) {
    this.selected = cell;
    this.draw();
    if (this.picture && cell >= 0) this.showSelected();
    this.onSelect(this.grouping === "rank" ? cell : -1);
  }

  move(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
    const step = steps[event.key];
    if (!step || !this.count) return;
    event.preventDefault();
    const target = this.selected < 0 ? 0 : this.selected + step;
    if (target >= 0 && target < this.count) this.select(target);
  }
}
