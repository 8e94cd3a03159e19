// The findings: a line each, which unfolds to evidence, fix and page.

import { byId, copy, element, render } from "./dom.js";

const unfolded = new Set();
const folded = new Set();
let pages = {};
let newest = [];

const keyOf = (finding) => `${finding.rule} ${finding.who.join()}`;

export function setPages(message) {
  pages = message.pages;
}

export function showFindings(message) {
  newest = message.findings;
  const leading = newest.find((f) => !f.over && f.severity !== "info");
  if (leading && !unfolded.size && !folded.size) unfolded.add(keyOf(leading));
  render(byId("findings"), message, () => {
    if (!newest.length) return [element("p", { className: "quiet" }, "None now.")];
    const nodes = newest.map(findingNode);
    if (message.left_out) nodes.push(element("p", { className: "quiet" }, `and ${message.left_out} more`));
    return nodes;
  });
}

// The fix of the finding that has the focus, else of the first one that is open.
export function copyFix() {
  const focused = document.activeElement && document.activeElement.closest("details.finding");
  const node = focused || document.querySelector("details.finding[open]") || document.querySelector("details.finding");
  const finding = node && newest.find((f) => keyOf(f) === node.dataset.key);
  if (finding && finding.fix) copy(finding.fix);
}

function findingNode(finding) {
  const key = keyOf(finding);
  const state = finding.over ? "resolved" : finding.severity;
  const certainty = finding.certainty === "certain" ? "" : ` (${finding.certainty})`;
  const node = element("details", { className: `finding ${state}`, open: unfolded.has(key) },
    element("summary", {},
      element("span", { className: "label" }, `${finding.over ? "resolved " : ""}${finding.severity} ${finding.rule} ${finding.name}`),
      `: ${finding.summary}${certainty}`));
  node.dataset.key = key;
  node.addEventListener("toggle", () => {
    (node.open ? unfolded : folded).add(key);
    (node.open ? folded : unfolded).delete(key);
  });
  node.append(element("div", { className: "finding-body" }, ...body(finding)));
  return node;
}

function body(finding) {
  const parts = [];
  const list = (title, items) => {
    if (!items.length) return;
    parts.push(element("h3", {}, title), element("ul", {}, ...items.map((item) => element("li", {}, item))));
  };
  list("Who", finding.who.slice(0, 50));
  list("Why", finding.evidence.map(([observed, origin]) => (origin ? `${observed} [${origin}]` : observed)));
  if (finding.place) list("Where", [finding.place]);
  list("When", [finding.over ? `${finding.at}, until ${finding.over}` : finding.at].filter(Boolean));
  if (finding.fix) {
    const button = element("button", { type: "button", className: "copy", "aria-label": `Copy the fix of ${finding.rule}` }, "Copy");
    button.addEventListener("click", () => copy(finding.fix));
    parts.push(element("h3", {}, "What to do"), element("div", { className: "fix" }, element("pre", { className: "command" }, finding.fix), button));
  }
  const page = element("details", { className: "rule-page" }, element("summary", {}, `Page of ${finding.rule}`));
  page.addEventListener("toggle", () => {
    if (page.open && page.childElementCount === 1) {
      page.append(element("pre", { className: "page", tabIndex: 0, role: "region", "aria-label": `Page of ${finding.rule}` }, pages[finding.rule] || "There is no page."));
    }
  });
  parts.push(element("h3", {}, "More"), page);
  return parts;
}
