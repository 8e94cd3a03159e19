// The course of the run: step time with median and outliers, waiting, loss, memory.

import uPlot from "./vendor/uPlot.esm.js";
import { byId, element } from "./dom.js";
import { bytes, median, seconds, share } from "./figures.js";

const OUTLIER = 1.5; // times the median
const MAX_POINTS = 1200;
const HEIGHT = 150;

const slowest = (point) => Math.max(point.step_s || 0, point.step_longest_s || 0);
const isOutlier = (point, middle) => Boolean(point.steps_per_s) && slowest(point) > OUTLIER * middle;

const PLOTS = [
  { title: "Duration of a step", format: seconds, series: [
    ["median over ranks", "#1f77b4", (p) => p.step_s],
    ["slowest rank, own part", "#7f7f7f", (p) => p.step_longest_s],
    ["outlier", "#d62728", (p, middle) => (isOutlier(p, middle) ? slowest(p) : null), true] ] },
  { title: "Share of waiting for others", format: share, range: [0, 1], series: [["waiting", "#b8860b", (p) => p.waiting || 0]] },
  { title: "Loss", format: (v) => Number(v.toPrecision(4)).toString(), series: [["median loss", "#2ca02c", (p) => p.loss]] },
  { title: "Memory of all ranks", format: bytes, series: [["resident", "#9467bd", (p) => p.memory_nbytes || 0]] },
];

export class Plots {
  constructor() {
    this.points = [];
    this.drawn = [];
    new ResizeObserver(() => this.resize()).observe(byId("plots"));
  }

  setPoints(points) {
    this.points = points;
    this.draw();
  }

  add(point) {
    const newest = this.points[this.points.length - 1];
    if (newest && point.elapsed_s <= newest.elapsed_s) return;
    this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points.splice(0, this.points.length - MAX_POINTS);
    this.draw();
  }

  // Built anew when the theme changes: a canvas does not follow the style sheet.
  reset() {
    this.drawn.forEach((plot) => plot.destroy());
    this.drawn = [];
    byId("plots").replaceChildren();
    this.draw();
  }

  draw() {
    const moving = this.points.filter((p) => p.steps_per_s);
    const middle = median(moving.map((p) => p.step_s));
    const outliers = moving.filter((p) => isOutlier(p, middle)).length;
    byId("outliers").textContent = middle === null
      ? "No step has been timed yet."
      : `Median step ${seconds(middle)}; at ${outliers} of ${moving.length} moments it took more than ${OUTLIER} times that, on all ranks or on the slowest.`;
    const times = this.points.map((p) => p.elapsed_s);
    PLOTS.forEach((plot, index) => {
      const columns = plot.series.map(([, , value]) => this.points.map((p) => value(p, middle) ?? null));
      if (!this.drawn[index]) this.drawn[index] = this.create(plot);
      const isEmpty = columns.every((column) => column.every((value) => value === null));
      this.drawn[index].root.parentElement.classList.toggle("empty", isEmpty);
      this.drawn[index].setData([times, ...columns]);
    });
  }

  create(plot) {
    const style = getComputedStyle(document.body);
    const line = getComputedStyle(document.documentElement).getPropertyValue("--line");
    const axis = { stroke: style.color, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
    const box = element("div", { className: "plot", role: "group", "aria-label": plot.title }, element("h3", {}, plot.title), element("p", { className: "nothing quiet" }, "not known yet"));
    byId("plots").append(box);
    const options = {
      width: Math.max(200, box.clientWidth),
      height: HEIGHT,
      scales: { x: { time: false }, y: plot.range ? { range: plot.range } : {} },
      cursor: { sync: { key: "course" }, drag: { x: true, y: false } },
      axes: [
        { ...axis, values: (u, ticks) => ticks.map((t) => (t >= 120 ? `${+(t / 60).toFixed(1)} min` : `${+t.toFixed(1)} s`)) },
        { ...axis, size: 64, values: (u, ticks) => ticks.map((t) => (t === null ? "" : plot.format(t))) },
      ],
      series: [
        { label: "time", value: (u, v) => seconds(v) },
        ...plot.series.map(([label, colour, , isPoints]) => ({
          label,
          stroke: colour,
          width: isPoints ? 0 : 1.5,
          points: isPoints ? { show: true, size: 7, fill: colour } : { show: false },
          value: (u, v) => (v === null || v === undefined ? "–" : plot.format(v)),
        })),
      ],
    };
    return new uPlot(options, [[], ...plot.series.map(() => [])], box);
  }

  resize() {
    this.drawn.forEach((plot) => plot.setSize({ width: Math.max(200, plot.root.parentElement.clientWidth), height: HEIGHT }));
  }
}
