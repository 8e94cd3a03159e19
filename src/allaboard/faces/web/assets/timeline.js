// What each rank did over the run: a lane per rank, time from left to right; zoomed by wheel, keys or buttons.

import { colourOf, names } from "./colours.js";
import { byId, sized } from "./dom.js";
import { seconds } from "./figures.js";

const LANE = 14;
const MAX_LANES = 40;
const LABEL = 96;
const AXIS = 18;
const NARROWEST_S = 2;

export class Timeline {
  constructor(ask) {
    this.ask = ask;
    this.canvas = byId("timeline");
    this.start = 0;
    this.names = [];
    this.times = [];
    this.lanes = [];
    this.span = null; // [from, to] in seconds; null: the whole run
    byId("zoom-in").addEventListener("click", () => this.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.zoom(2));
    byId("zoom-all").addEventListener("click", () => this.setSpan(null));
    byId("lane-start").addEventListener("change", (event) => this.scrollTo(Number(event.target.value)));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.canvas) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event.offsetX));
    }, { passive: false });
    this.canvas.addEventListener("mousemove", (event) => this.showMoment(event));
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(byId("timeline-box"));
  }

  setMembers(members) {
    this.total = members.names.length;
    byId("lane-start").max = Math.max(0, this.total - 1);
    this.request();
  }

  request() {
    this.ask({ kind: "lanes", start: this.start, count: MAX_LANES });
  }

  setLanes(message) {
    this.start = message.start;
    this.names = message.names;
    this.times = message.times;
    this.lanes = message.lanes;
    this.draw();
  }

  // The newest picture is one more moment; the server thins them, so all are asked for again from time to time.
  add(picture) {
    const newest = this.times[this.times.length - 1];
    if (newest !== undefined && picture.elapsed_s <= newest) return;
    this.times.push(picture.elapsed_s);
    this.lanes = this.lanes.map((lane, i) => lane + (picture.letters[this.start + i] || " "));
    if (this.times.length > 2400) this.request();
    this.draw();
  }

  whole() {
    return [this.times[0] ?? 0, Math.max(this.times[this.times.length - 1] ?? 1, (this.times[0] ?? 0) + 1)];
  }

  range() {
    return this.span || this.whole();
  }

  setSpan(span) {
    this.span = span;
    this.draw();
  }

  zoom(factor, around) {
    const [from, to] = this.range();
    const [first, last] = this.whole();
    const middle = around ?? (from + to) / 2;
    const width = Math.max(NARROWEST_S, (to - from) * factor);
    if (width >= last - first) {
      this.setSpan(null);
      return;
    }
    const part = (middle - from) / (to - from);
    const left = Math.max(first, Math.min(last - width, middle - part * width));
    this.setSpan([left, left + width]);
  }

  pan(share) {
    const [from, to] = this.range();
    const [first, last] = this.whole();
    if (!this.span) return;
    const shift = Math.max(first - from, Math.min(last - to, (to - from) * share));
    this.setSpan([from + shift, to + shift]);
  }

  scrollTo(start) {
    this.start = Math.max(0, Math.min(start || 0, Math.max(0, (this.total || 1) - 1)));
    byId("lane-start").value = this.start;
    this.request();
  }

  key(event) {
    const actions = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.setSpan(null),
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
      ArrowUp: () => this.scrollTo(this.start - 10), ArrowDown: () => this.scrollTo(this.start + 10),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  drag(event) {
    const from = this.timeAt(event.offsetX);
    const finish = (end) => {
      const to = this.timeAt(end.offsetX);
      if (Math.abs(end.offsetX - event.offsetX) > 8) this.setSpan([Math.min(from, to), Math.max(from, to, from + 0.5)]);
    };
    this.canvas.addEventListener("pointerup", finish, { once: true });
  }

  timeAt(x) {
    const [from, to] = this.range();
    const width = this.canvas.clientWidth - LABEL;
    return from + Math.max(0, Math.min(1, (x - LABEL) / width)) * (to - from);
  }

  showMoment(event) {
    const lane = Math.floor(event.offsetY / LANE);
    if (lane < 0 || lane >= this.lanes.length || event.offsetX < LABEL) return;
    const time = this.timeAt(event.offsetX);
    let index = this.times.findIndex((t) => t > time);
    index = index < 0 ? this.times.length - 1 : Math.max(0, index - 1);
    const activity = names.get(this.lanes[lane][index]) || "not there";
    byId("moment").textContent = `${this.names[lane]} at ${seconds(time)}: ${activity}`;
  }

  draw() {
    const width = byId("timeline-box").clientWidth;
    if (!width || !this.lanes.length) return;
    const height = this.lanes.length * LANE + AXIS;
    const context = sized(this.canvas, width, height);
    const style = getComputedStyle(document.body);
    const [from, to] = this.range();
    const pixels = (time) => LABEL + ((time - from) / (to - from)) * (width - LABEL);
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    this.lanes.forEach((lane, row) => {
      this.drawLane(context, lane, row * LANE, pixels, width);
      context.fillStyle = style.backgroundColor;
      context.clearRect(0, row * LANE, LABEL, LANE);
      context.fillStyle = style.color;
      context.fillText(this.names[row].slice(0, 14), 0, row * LANE + LANE / 2);
    });
    context.fillStyle = style.color;
    const ticks = width < 500 ? 2 : 4;
    for (let tick = 0; tick <= ticks; tick += 1) {
      const time = from + ((to - from) * tick) / ticks;
      context.textAlign = tick === 0 ? "left" : tick === ticks ? "right" : "center";
      context.fillText(seconds(time), pixels(time), height - AXIS / 2);
    }
    context.textAlign = "left";
    const last = this.start + this.lanes.length - 1;
    byId("timeline-range").textContent =
      `${seconds(from)} to ${seconds(to)}; rows ${this.start} to ${last} of ${this.total}. Drag across a span to zoom.`;
  }

  drawLane(context, lane, y, pixels, width) {
    let begin = 0;
    for (let i = 1; i <= lane.length; i += 1) {
      if (i < lane.length && lane[i] === lane[begin]) continue;
      const left = Math.max(LABEL, pixels(this.times[begin]));
      const right = Math.min(width, pixels(i < lane.length ? this.times[i] : this.times[lane.length - 1]));
      if (lane[begin] !== " " && right >= LABEL && left <= width) {
        context.fillStyle = colourOf(lane[begin])[0];
        context.fillRect(left, y, Math.max(1, right - left), LANE - 2);
        if (right - left > 12) {
          context.fillStyle = colourOf(lane[begin])[1];
          context.fillText(lane[begin], left + 3, y + LANE / 2 - 1);
        }
      }
      begin = i;
    }
  }
}
