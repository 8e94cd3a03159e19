// The merged stacks of all ranks as a flame graph: outermost calls on top, width by the number of ranks.

import { byId, element, render } from "./dom.js";
import { ranks } from "./figures.js";

const ROW = 22;
const MAX_CALLS = 3000;
let root = null;

const countOf = (branch) => branch.ranks.reduce((sum, [a, b]) => sum + b - a + 1, 0) + branch.others.length;

export function showStacks(message) {
  const status = byId("stacks-status");
  byId("get-stacks").disabled = false;
  if (message.refusal) {
    status.textContent = `no stacks: ${message.refusal}`;
    return;
  }
  const missing = message.missing.length ? `; none came from ${message.missing.join(", ")}` : "";
  status.textContent = `stacks of ${message.sampled} processes at ${message.sampled_at}${missing}`;
  root = message.tree;
  draw(root);
}

export function unzoom() {
  if (root) draw(root);
}

export function askForStacks(send) {
  if (!send({ kind: "stacks" })) return;
  byId("get-stacks").disabled = true;
  byId("stacks-status").textContent = "collecting the stacks of all ranks …";
}

function draw(branches) {
  const calls = [];
  const total = branches.reduce((sum, b) => sum + countOf(b), 0) || 1;
  place(branches, 0, 0, total, calls);
  const depth = calls.reduce((deepest, call) => Math.max(deepest, call.depth + 1), 0);
  const box = byId("flame");
  byId("unzoom").hidden = branches === root;
  byId("call").textContent = "";
  render(box, calls.map((c) => [c.label, c.left, c.width]), () => calls.map(node));
  box.style.height = `${depth * ROW}px`;
  box.dataset.calls = calls.length;
}

function place(branches, left, depth, total, calls) {
  let x = left;
  for (const branch of branches) {
    const width = countOf(branch) / total;
    const label = ranks(branch.ranks, branch.others);
    branch.calls.forEach((call, row) => {
      if (calls.length < MAX_CALLS) {
        calls.push({ call, label, left: x, width, depth: depth + row, branch: { ...branch, calls: branch.calls.slice(row) }, count: countOf(branch) });
      }
    });
    place(branch.below, x, depth + branch.calls.length, total, calls);
    x += width;
  }
}

function node(entry) {
  const { call, label } = entry;
  const name = call.file.split("/").pop();
  const shortText = `${call.function} ${name}:${call.line} · ranks ${label}`;
  const longText = `${call.function} at ${call.file}:${call.line} · ${entry.count} processes: ${label}${call.text ? ` · ${call.text}` : ""}`;
  const button = element("button", { type: "button", className: `call ${call.is_own ? "own" : "library"}`, title: longText, "aria-label": longText }, shortText);
  button.style.left = `${entry.left * 100}%`;
  button.style.width = `${entry.width * 100}%`;
  button.style.top = `${entry.depth * ROW}px`;
  const tell = () => { byId("call").textContent = longText; };
  button.addEventListener("mouseenter", tell);
  button.addEventListener("focus", tell);
  button.addEventListener("click", () => draw([entry.branch]));
  return button;
}
