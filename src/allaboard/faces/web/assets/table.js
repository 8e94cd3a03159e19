// The table of ranks, as the server has filtered and sorted it.

import { byId, element, render } from "./dom.js";

const LONG = new Set(["waits for", "at"]);

export function showTable(picture) {
  byId("shown").textContent = `${picture.rows.length} of ${picture.shown} ranks that match, of ${picture.total}`;
  byId("more").hidden = picture.rows.length >= Math.min(picture.shown, 500);
  render(byId("ranks"), [picture.columns, picture.rows], () => [
    element("thead", {}, element("tr", {}, ...picture.columns.map((c) => element("th", { scope: "col" }, c)))),
    element("tbody", {}, ...picture.rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
      element("td", { className: LONG.has(picture.columns[i]) ? "long" : "" }, cell))))),
  ]);
}
