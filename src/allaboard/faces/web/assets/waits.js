// Who waits for whom: a row for each group of ranks that wait in one operation.

import { byId, element, render } from "./dom.js";
import { seconds } from "./figures.js";

export function showWaits(picture) {
  render(byId("waits"), picture.waits, () => {
    if (!picture.waits.length) return [element("p", { className: "quiet" }, "Nobody waits for anybody.")];
    return picture.waits.map(row);
  });
}

function box(rank) {
  const state = [rank.activity, rank.place].filter(Boolean).join(" at ");
  return element("div", { className: "awaited" }, element("strong", {}, rank.name), ` ${state}`);
}

function row(group) {
  const awaited = group.awaited.map(box);
  const more = group.awaited_count - group.awaited.length;
  if (more > 0 && awaited.length) awaited.push(element("div", { className: "quiet" }, `and ${more} more`));
  if (!awaited.length) awaited.push(element("div", { className: "quiet" }, "for whom is not known"), ...group.troubled.map(box));
  return element("div", { className: "wait" },
    element("div", {}, element("strong", {}, group.count === 1 ? "1 rank" : `${group.count} ranks`), ` ${group.ranks}`),
    element("div", { className: "arrow" }, `${group.operation} → ${seconds(group.seconds)}`),
    element("div", {}, ...awaited));
}
