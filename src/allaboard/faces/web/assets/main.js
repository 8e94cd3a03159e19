// Wires the page: messages of the server to panels, and what the person does to requests.

import { setLegend } from "./colours.js";
import { byId, element, render } from "./dom.js";
import { copyFix, setPages, showFindings } from "./findings.js";
import { askForStacks, showStacks, unzoom } from "./flame.js";
import { Grid } from "./grid.js";
import { showHosts, showLinks, showServers } from "./hosts.js";
import { Link } from "./link.js";
import { Plots } from "./plots.js";
import { showTable } from "./table.js";
import { Timeline } from "./timeline.js";
import { showWaits } from "./waits.js";

const view = { kind: "view", metric: "", filter: "all", order: "urgency", search: "", limit: 50, selected: -1 };
const grid = new Grid((index) => changeView({ selected: index }));
const timeline = new Timeline((message) => link.send(message));
const plots = new Plots();
let restarts = [];
let notes = [];

const link = new Link({
  source: showSource,
  members(message) {
    grid.setMembers(message);
    timeline.setMembers(message);
  },
  picture: showPicture,
  findings: showFindings,
  pages: setPages,
  course: (message) => plots.setPoints(message.points),
  lanes: (message) => timeline.setLanes(message),
  stacks: showStacks,
  notes(message) {
    ({ notes } = message);
    showNotes();
  },
}, showState);

function showState(state) {
  if (state === "open") {
    link.send(view);
    byId("panels").hidden = false;
  }
  if (state === "lost") byId("source").textContent = "connection to the page's server lost; trying again";
  if (state === "ended") byId("source").textContent = "the server has ended with its run";
}

function showSource(message) {
  setLegend(message.legend);
  byId("source").textContent = message.is_live ? `live: ${message.text}` : message.text;
  byId("notice").hidden = !message.notice;
  byId("notice").textContent = message.notice;
  link.hasEnded = Boolean(message.notice);
}

function showPicture(picture) {
  const phase = byId("phase");
  phase.textContent = picture.phase;
  phase.className = picture.is_well ? "pill good" : "pill bad";
  document.title = `${picture.phase} · allaboard`;
  byId("title").textContent = picture.title;
  byId("headline").textContent = picture.headline;
  render(byId("concerns"), picture.concerns, () => picture.concerns.map((text) => element("li", {}, text)));
  grid.show(picture);
  timeline.add(picture);
  plots.add(picture.point);
  showWaits(picture);
  showTable(picture);
  showHosts(picture);
  showLinks(picture);
  showServers(picture);
  ({ restarts } = picture);
  showNotes();
}

function showNotes() {
  const texts = [...notes].reverse().map(([time, text]) => `${time}  ${text}`);
  for (const restart of restarts) texts.push(`${restart.what}: ${restart.reason}`);
  render(byId("notes"), texts, () => texts.map((text) => element("li", {}, text)));
}

function changeView(changes) {
  Object.assign(view, changes);
  link.send(view);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("allaboard-theme", theme);
  plots.reset();
  grid.draw();
  timeline.draw();
}

function toggleTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

function toggleHelp() {
  const keys = byId("keys");
  keys.hidden = !keys.hidden;
  byId("help").setAttribute("aria-expanded", String(!keys.hidden));
}

function next(select) {
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event("change"));
}

const KEYS = {
  s: () => askForStacks((message) => link.send(message)),
  c: copyFix,
  "/": () => byId("search").focus(),
  f: () => next(byId("filter")),
  o: () => next(byId("order")),
  d: toggleTheme,
  "?": toggleHelp,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
byId("theme").addEventListener("click", toggleTheme);
byId("help").addEventListener("click", toggleHelp);
byId("get-stacks").addEventListener("click", KEYS.s);
byId("unzoom").addEventListener("click", unzoom);
byId("metric").addEventListener("change", (event) => changeView({ metric: event.target.value }));
byId("filter").addEventListener("change", (event) => changeView({ filter: event.target.value }));
byId("order").addEventListener("change", (event) => changeView({ order: event.target.value }));
byId("search").addEventListener("input", (event) => changeView({ search: event.target.value }));
byId("more").addEventListener("click", () => changeView({ limit: Math.min(500, view.limit + 100) }));

const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.documentElement.dataset.theme = localStorage.getItem("allaboard-theme") || preferred;
link.open();
