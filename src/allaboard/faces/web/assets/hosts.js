// Hosts with their resources, links between them, and parameter servers.

import { byId, element, render } from "./dom.js";
import { bytes, seconds, share } from "./figures.js";

const MAX_MATRIX = 40;

function table(titles, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...titles.map((t) => element("th", { scope: "col" }, t)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((c) => (c instanceof HTMLTableCellElement ? c : element("td", {}, c)))))));
}

const amount = (name, value) => (/(process|file|fd|inode|thread)/i.test(name) && !/memory|disk/i.test(name) ? Math.round(value).toString() : bytes(value));

function level(name, used, limit) {
  const part = limit ? used / limit : 0;
  const node = element("span", { className: "resource" }, `${name} `);
  if (limit) {
    node.append(element("meter", { min: 0, max: 1, low: 0.8, high: 0.9, optimum: 0.1, value: part, "aria-label": `${name}: ${share(part)} used` }),
      ` ${share(part)} of ${amount(name, limit)}`);
  } else {
    node.append(amount(name, used));
  }
  return node;
}

function gpuWords(gpu) {
  const parts = [`GPU ${gpu.index} ${share(gpu.busy)} busy`];
  if (gpu.foreign_nbytes) parts.push(`${bytes(gpu.foreign_nbytes)} held by others`);
  if (gpu.temperature_c) parts.push(`${gpu.temperature_c} °C`);
  if (gpu.power_w) parts.push(`${Math.round(gpu.power_w)} W`);
  if (gpu.clock_mhz) parts.push(`${gpu.clock_mhz} MHz`);
  for (const [count, name] of [[gpu.ecc_errors, "uncorrected memory errors"], [gpu.pcie_replays, "PCI replays"], [gpu.nvlink_errors, "NVLink errors"]]) {
    if (count) parts.push(`${count} ${name}`);
  }
  if (gpu.slowed_by) parts.push(`slowed down: ${gpu.slowed_by}`);
  return parts.join(", ");
}

function loadWords(load) {
  const shares = [["steal", load.steal], ["waiting for a core", load.cpu_pressure], ["for memory", load.memory_pressure],
    ["for disks", load.io_pressure], ["TCP segments sent again", load.retransmitted]];
  const parts = shares.filter(([, part]) => part >= 0.005).map(([name, part]) => `${name} ${share(part)}`);
  if (load.throttled >= 0.005) parts.push(`throttled ${load.throttled.toFixed(2)} s/s`);
  if (load.swapped_per_s >= 1) parts.push(`swap ${bytes(load.swapped_per_s)}/s`);
  if (load.received_per_s >= 1 || load.sent_per_s >= 1) {
    parts.push(`network ${bytes(load.received_per_s || 0)}/s in, ${bytes(load.sent_per_s || 0)}/s out`);
  }
  return parts.join(", ");
}

export function showHosts(picture) {
  render(byId("hosts"), [picture.hosts, picture.hosts_left_out], () => {
    if (!picture.hosts.length) return [element("p", { className: "quiet" }, "No host yet.")];
    const rows = picture.hosts.map((host) => {
      const levels = (host.resources || []).map((r) => level(r.name, r.used, r.limit || 0));
      for (const gpu of host.gpus || []) {
        levels.push(level(`GPU ${gpu.index} ${gpu.name || ""} memory`, gpu.memory_nbytes || 0, gpu.memory_limit_nbytes || 0),
          element("span", { className: "resource" }, gpuWords(gpu)));
      }
      const stores = (host.stores || []).map((s) => `${s.name} ${seconds(s.latency_s)} a request${s.busy ? `, ${share(s.busy)} busy` : ""}`);
      for (const words of [loadWords(host.load || {}), ...stores]) {
        if (words) levels.push(element("span", { className: "resource" }, words));
      }
      const traffic = host.received_per_s || host.sent_per_s ? `${bytes(host.received_per_s)}/s in, ${bytes(host.sent_per_s)}/s out` : "–";
      const name = host.lost ? `${host.host} (LOST)` : host.host;
      return [name, String(host.ranks || 0), (host.cpu || 0).toFixed(1), bytes(host.memory_nbytes), traffic, element("td", { className: "long" }, ...levels)];
    });
    const nodes = [table(["host", "ranks", "cores", "memory", "network", "resources"], rows)];
    if (picture.hosts_left_out) nodes.push(element("p", { className: "quiet" }, `and ${picture.hosts_left_out} more hosts`));
    return nodes;
  });
}

export function showLinks(picture) {
  render(byId("links"), [picture.links, picture.links_working], () => {
    const nodes = [];
    const { links } = picture;
    const hosts = [...new Set(links.flatMap((l) => [l.source, l.target]))].sort();
    if (links.length && hosts.length <= MAX_MATRIX) nodes.push(matrix(links, hosts));
    const broken = links.filter((l) => !l.works);
    for (const link of broken.slice(0, 100)) {
      nodes.push(element("p", {}, `${link.source} → ${link.target} is broken: ${link.answer || ""} (${link.address || "?"})`));
    }
    const working = picture.links_working;
    if (working) {
      nodes.push(element("p", { className: "quiet" }, `${working.count} further links work: median ${seconds(working.seconds)}, ${bytes(working.rate)}/s`));
    }
    return nodes.length ? nodes : [element("p", { className: "quiet" }, "Links are tested between the hosts of a job; there are none here.")];
  });
}

function matrix(links, hosts) {
  const byPair = new Map(links.map((l) => [`${l.source}\n${l.target}`, l]));
  const body = hosts.map((source) => element("tr", {}, element("th", { scope: "row" }, source), ...hosts.map((target) => {
    const link = byPair.get(`${source}\n${target}`);
    if (!link) return element("td", {}, source === target ? "" : "·");
    const text = link.works ? (link.seconds ? seconds(link.seconds) : "✓") : "✗";
    const title = link.works ? `${source} → ${target}: ${seconds(link.seconds || 0)}, ${bytes(link.rate)}/s` : `${source} → ${target}: ${link.answer || "broken"}`;
    return element("td", { className: link.works ? "works" : "broken", title }, text);
  })));
  return element("table", { className: "matrix" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "from \\ to"), ...hosts.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...body));
}

export function showServers(picture) {
  render(byId("servers"), picture.servers, () => {
    if (!picture.servers.length) return [element("p", { className: "quiet" }, "This job has no parameter server.")];
    return [table(["server", "host", "busy", "in", "out", "variables", "tasks"], picture.servers.map((s) => [
      s.alive === false ? `${s.name} (GONE)` : s.name, s.host || "", share(s.busy), `${bytes(s.received_per_s)}/s`, `${bytes(s.sent_per_s)}/s`,
      s.variables ? `${s.variables} (${bytes(s.nbytes)})` : "–", String(s.workers || 0)]))];
  });
}
