"""A preflight as text for a person and as JSON for a program, with its published schema."""

from __future__ import annotations

from statistics import median

import msgspec

from allaboard.facts import Answer, Link, Preflight, PreflightMember
from allaboard.report.plain_text import clean
from allaboard.report.published import published

WIDE = 16
"""Hosts up to which the whole matrix is shown; beyond, only the links that are worth a look."""
SHORT = {
    Answer.SILENT: "no answer",
    Answer.NO_NAME: "no name",
    Answer.MUTE: "mute",
    Answer.CUT: "large lost",
}
VERSIONS = ("python", "torch", "tensorflow", "jax")


def as_json(found: Preflight) -> str:
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def schema() -> dict[str, object]:
    """The published JSON Schema of `preflight --format json`, from its types."""
    return published(Preflight)


def text(found: Preflight) -> str:
    """The tables of one preflight; its findings were told as they were made. A host that others came
    to knows all, another one only its own part: a line."""
    if not found.leads:
        return clean(f"{found.host}: {verdict(found)}") + "\n"
    here = len([m for m in found.members if m.state in ("aboard", "waits")])
    lines = [f"{here} of {found.size} here, meeting at {found.place} ({found.mode})"]
    lines += grid(rows(found))
    if found.links or found.usual is not None:
        lines += [
            "",
            "links, from row to column: round trip, rate of one block",
            *grid(matrix(found)),
        ]
    if found.collective:
        lines += ["", f"{found.framework}: {found.collective}"]
    lines += ["", verdict(found)]
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def verdict(found: Preflight) -> str:
    """The last line: whether the job would start."""
    if found.outcome == "ok":
        warned = f", {len(found.findings)} findings to look at" if found.findings else ""
        return f"ready to start{warned.replace('1 findings', '1 finding')} ({found.seconds:.1f} s)"
    if found.outcome == "interrupted":
        return "interrupted before it was done"
    names = ", ".join(dict.fromkeys(f"{f.rule} {f.name}" for f in found.findings))
    unknown = "no rule knows why; the logs may"
    if not found.met:
        unknown = f"this host saw no roll call of all {found.size} tasks; {unknown}"
    return f"would not start: {names or unknown} ({found.seconds:.1f} s)"


def rows(found: Preflight) -> list[list[str]]:
    """The table of members, with its head; versions that are nowhere known are left out."""
    shown = [v for v in VERSIONS if any(f"version {v}" in m.facts for m in found.members)]
    head = ["rank", "task", "host", "address", "state", *shown, "CPUs", "GPUs", "clock"]
    return [head, *(_row(m, shown) for m in found.members)]


def _row(member: PreflightMember, shown: list[str]) -> list[str]:
    facts = member.facts
    return [
        str(member.rank) if member.rank >= 0 else "?",
        f"{member.job} {member.index}" if member.index >= 0 else member.job,
        member.host or "-",
        facts.get("data address") or "-",
        member.state,
        *(facts.get(f"version {v}", "-") for v in shown),
        facts.get("count CPUs", "-"),
        facts.get("count GPUs", "-"),
        f"{member.ahead:+.1f} s" if abs(member.ahead) >= 0.1 else "ok" if member.host else "-",
    ]


def matrix(found: Preflight) -> list[list[str]]:
    """Who reaches whom: all of them, or those that fail and the slowest where hosts are many."""
    known = {(k.source, k.target): k for k in found.links}
    hosts = found.hosts
    if len(hosts) > WIDE:
        return _worst(found)
    table = [["", *hosts]]
    for source in hosts:
        cells = [_cell(known.get((source, target)), source == target) for target in hosts]
        table.append([source, *cells])
    return table


def cell(link: Link) -> str:
    """What came of one link, in a few characters."""
    if not link.works:
        return SHORT.get(link.answer, str(link.answer))
    return f"{link.seconds * 1e3:.1f} ms, {speed(link.rate)}"


def speed(rate: float) -> str:
    """Bytes per second as MB/s, two digits at the least."""
    return f"{rate / 1e6:.{0 if rate >= 9.95e6 else 1}f} MB/s"


def _cell(link: Link | None, own: bool) -> str:
    return "-" if own else "not tried" if link is None else cell(link)


def _worst(found: Preflight) -> list[list[str]]:
    good = [k for k in found.links if k.works]
    wrong = [k for k in found.links if not k.works]
    slow = sorted(good, key=lambda k: k.rate)[:5]
    usual = speed(median(k.rate for k in good)) if good else "-"
    works, tried = len(good), len(found.links)
    if found.usual is not None:
        works, tried = found.usual.count, found.usual.count + len(wrong)
        usual = speed(found.usual.rate)
    return [
        ["from", "to", f"{works} of {tried} links work, median {usual}"],
        *([k.source, k.target, cell(k)] for k in wrong[:40]),
        *([k.source, k.target, f"{cell(k)} (slowest)"] for k in slow),
    ]


def grid(table: list[list[str]]) -> list[str]:
    """Columns side by side."""
    widths = [max(len(row[i]) for row in table if i < len(row)) for i in range(len(table[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)) for row in table]
