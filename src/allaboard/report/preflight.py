"""A preflight as text for a person and as JSON for a program, with its published schema."""

from __future__ import annotations

from statistics import median

from allaboard.facts import Answer, Link, Preflight, PreflightMember
from allaboard.report.json_schema import json_schema_of
from allaboard.report.json_text import indented_json
from allaboard.report.plain_text import clean

MAX_MATRIX_HOSTS = 16
"""Hosts up to which the whole matrix is shown; beyond, only the links that are worth a look."""
ANSWER_LABELS = {
    Answer.SILENT: "no answer",
    Answer.NO_NAME: "no name",
    Answer.MUTE: "mute",
    Answer.CUT: "large lost",
}
"""Labels of failed links that are shorter than the answer's own name."""
VERSIONED_PACKAGES = ("python", "torch", "tensorflow", "jax")
"""Packages whose versions have a column of their own."""


def as_json(preflight: Preflight) -> str:
    """Return the whole preflight as indented JSON."""
    return indented_json(preflight)


def preflight_schema() -> dict[str, object]:
    """The published JSON Schema of `preflight --format json`, from its types."""
    return json_schema_of(Preflight)


def as_text(preflight: Preflight) -> str:
    """Return the tables of one preflight; its findings were printed as they were made.

    The host where the others met knows all of it. Any other host knows only its own part: one line.
    """
    if not preflight.leads:
        return clean(f"{preflight.host}: {preflight_verdict(preflight)}") + "\n"
    present_count = len([m for m in preflight.members if m.state in ("aboard", "waits")])
    lines = [
        f"{present_count} of {preflight.size} here, meeting at {preflight.place} ({preflight.mode})"
    ]
    lines += align_columns(member_rows(preflight))
    if preflight.links or preflight.usual is not None:
        lines += [
            "",
            "links, from row to column: round trip, rate of one block",
            *align_columns(link_matrix(preflight)),
        ]
    if preflight.collective:
        lines += ["", f"{preflight.framework}: {preflight.collective}"]
    lines += ["", preflight_verdict(preflight)]
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def preflight_verdict(preflight: Preflight) -> str:
    """Return the last line: the answer to whether the job would start."""
    if preflight.outcome == "ok":
        warning = f", {len(preflight.findings)} findings to look at" if preflight.findings else ""
        return f"ready to start{warning.replace('1 findings', '1 finding')} ({preflight.seconds:.1f} s)"
    if preflight.outcome == "interrupted":
        return "interrupted before it was done"
    names = ", ".join(dict.fromkeys(f"{f.rule} {f.name}" for f in preflight.findings))
    no_cause = "no rule knows why; the logs may"
    if not preflight.met:
        no_cause = f"this host saw no roll call of all {preflight.size} tasks; {no_cause}"
    return f"would not start: {names or no_cause} ({preflight.seconds:.1f} s)"


def member_rows(preflight: Preflight) -> list[list[str]]:
    """Return the table of members, its head first; versions that no member reports are left out."""
    versions = [
        v for v in VERSIONED_PACKAGES if any(f"version {v}" in m.facts for m in preflight.members)
    ]
    head = ["rank", "task", "host", "address", "state", *versions, "CPUs", "GPUs", "clock"]
    return [head, *(_row(m, versions) for m in preflight.members)]


def _row(member: PreflightMember, versions: list[str]) -> list[str]:
    facts = member.facts
    return [
        str(member.rank) if member.rank >= 0 else "?",
        f"{member.job} {member.index}" if member.index >= 0 else member.job,
        member.host or "-",
        facts.get("data address") or "-",
        member.state,
        *(facts.get(f"version {v}", "-") for v in versions),
        facts.get("count CPUs", "-"),
        facts.get("count GPUs", "-"),
        f"{member.ahead:+.1f} s" if abs(member.ahead) >= 0.1 else "ok" if member.host else "-",
    ]


def link_matrix(preflight: Preflight) -> list[list[str]]:
    """Return the table of links from host to host.

    With more than ``MAX_MATRIX_HOSTS`` hosts only the links that fail and the slowest ones are listed.
    """
    links = {(k.source, k.target): k for k in preflight.links}
    hosts = preflight.hosts
    if len(hosts) > MAX_MATRIX_HOSTS:
        return _notable_links(preflight)
    table = [["", *hosts]]
    for source in hosts:
        cells = [_cell(links.get((source, target)), source == target) for target in hosts]
        table.append([source, *cells])
    return table


def describe_link(link: Link) -> str:
    """Return the result of one link in a few characters."""
    if not link.works:
        return ANSWER_LABELS.get(link.answer, str(link.answer))
    return f"{link.seconds * 1e3:.1f} ms, {format_rate(link.rate)}"


def format_rate(rate: float) -> str:
    """Return bytes per second as MB/s, with at least two digits."""
    return f"{rate / 1e6:.{0 if rate >= 9.95e6 else 1}f} MB/s"


def _cell(link: Link | None, is_diagonal: bool) -> str:
    return "-" if is_diagonal else "not tried" if link is None else describe_link(link)


def _notable_links(preflight: Preflight) -> list[list[str]]:
    working = [k for k in preflight.links if k.works]
    failed = [k for k in preflight.links if not k.works]
    slowest = sorted(working, key=lambda k: k.rate)[:5]
    median_rate = format_rate(median(k.rate for k in working)) if working else "-"
    works, tried = len(working), len(preflight.links)
    if preflight.usual is not None:
        works, tried = preflight.usual.count, preflight.usual.count + len(failed)
        median_rate = format_rate(preflight.usual.rate)
    return [
        ["from", "to", f"{works} of {tried} links work, median {median_rate}"],
        *([k.source, k.target, describe_link(k)] for k in failed[:40]),
        *([k.source, k.target, f"{describe_link(k)} (slowest)"] for k in slowest),
    ]


def align_columns(table: list[list[str]]) -> list[str]:
    """Return the rows as lines with aligned columns."""
    widths = [max(len(row[i]) for row in table if i < len(row)) for i in range(len(table[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)) for row in table]
