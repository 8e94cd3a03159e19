"""A run, or a diagnosis, as Markdown for an issue tracker. Text of others cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from allaboard.faces.report.rank_table import RankLine, rank_lines
from allaboard.faces.report.run_page import time_lines
from allaboard.facts import Diagnosis, Finding
from allaboard.feed.run_record import RunRecord
from allaboard.report.plain_text import clean
from allaboard.report.stack_text import crowd_lines, tree_lines
from allaboard.report.what_happened import headline, what_happened

MAX_SHOWN_FINDINGS = 20
MAX_SHOWN_EVIDENCE = 12
MAX_SHOWN_RANKS = 16
MAX_STACK_LINES = 60
MAX_LOG_LINES = 20
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@!])")
"""Characters that Markdown, or an issue tracker (a mention, an image), may read as markup."""


def run_as_markdown(record: RunRecord) -> str:
    """Return the report of a run as Markdown."""
    run = record.snapshot.run
    lines = [f"## The run {headline(record.snapshot)}", ""]
    lines += [_text(sentence) for sentence in what_happened(record.snapshot)]
    lines += _missing(record.missing)
    lines += _findings(record.findings)
    if times := time_lines(record.report):
        lines += ["", "### Where the time went", "", *(f"- {_text(line)}" for line in times)]
    shown, _ = rank_lines(record)
    if shown:
        lines += _rank_table(shown[:MAX_SHOWN_RANKS])
        left_out = len(record.snapshot.ranks) - MAX_SHOWN_RANKS
        lines += ["", f"and {left_out} more ranks"] if left_out > 0 else []
    if record.tree:
        lines += _folded("Stacks of all ranks", tree_lines(record.tree)[:MAX_STACK_LINES])
    for end in record.log_ends:
        lines += _folded(f"Last lines of {end.path}", end.lines[-MAX_LOG_LINES:])
    facts = {
        "command": " ".join(run.command),
        "allaboard": " ".join([run.allaboard, *record.options]).strip(),
        "framework": run.framework,
        "ranks": str(run.world_size),
        "started": run.started,
        "git commit": record.commit,
    }
    facts |= {e.name: _values(e.value, e.deviations) for e in record.environment}
    lines += ["", "### Environment", ""]
    lines += [f"- {_text(name)}: {_code(value)}" for name, value in facts.items() if value]
    return "\n".join(lines) + "\n"


def diagnosis_as_markdown(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as Markdown."""
    lines = ["## Diagnosis", ""]
    lines += [f"- {_text(line)}" for line in diagnosis.told[:MAX_STACK_LINES]]
    if diagnosis.conclusion:
        lines += ["", _text(diagnosis.conclusion)]
    lines += _missing(diagnosis.missing)
    lines += _findings(diagnosis.findings)
    if diagnosis.crowds:
        lines += ["", "### Places", "", *_block(crowd_lines(diagnosis.crowds)[:MAX_STACK_LINES])]
    if diagnosis.tree:
        lines += _folded("Stacks of all ranks", tree_lines(diagnosis.tree)[:MAX_STACK_LINES])
    if diagnosis.notes:
        lines += ["", "### Not read", "", *(f"- {_text(n)}" for n in diagnosis.notes[:40])]
    return "\n".join(lines) + "\n"


def _findings(findings: tuple[Finding, ...]) -> list[str]:
    lines = []
    for finding in findings[:MAX_SHOWN_FINDINGS]:
        resolved = ", resolved" if finding.over else ""
        lines += [
            "",
            f"### {finding.severity} {finding.rule} {finding.name} ({finding.certainty}{resolved})",
            "",
            _text(finding.summary),
            "",
            *(f"- {_text(str(e))}" for e in finding.evidence[:MAX_SHOWN_EVIDENCE]),
        ]
        if finding.fix:
            lines += ["", "What to do:", "", *_block(finding.fix.splitlines())]
    if len(findings) > MAX_SHOWN_FINDINGS:
        lines += ["", f"and {len(findings) - MAX_SHOWN_FINDINGS} more findings"]
    return lines


def _missing(missing: Iterable[str]) -> list[str]:
    listed = [f"- {_text(line)}" for line in missing]
    return ["", "### Missing", "", *listed] if listed else []


def _rank_table(shown: tuple[RankLine, ...]) -> list[str]:
    rows = [(r.name, r.host, str(r.pid), r.activity, r.location, str(r.step), r.end) for r in shown]
    titles = ("rank", "host", "pid", "did", "stood at", "steps", "end")
    columns = [n for n in range(len(titles)) if any(row[n] for row in rows)]
    return [
        "",
        "### Ranks",
        "",
        "| " + " | ".join(titles[n] for n in columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(_text(row[n]) for n in columns) + " |" for row in rows),
    ]


def _values(value: str, deviations: tuple[tuple[str, str], ...]) -> str:
    return "; ".join([value or "none", *(f"{whose}: {v or 'none'}" for v, whose in deviations)])


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return ["", f"<details><summary>{_text(title)}</summary>", "", *_block(lines), "", "</details>"]


def _block(lines: Iterable[str]) -> list[str]:
    """Return a fenced block; the fence is longer than any in the text."""
    shown = [clean(line) for line in lines]
    longest = max((len(m) for line in shown for m in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *shown, fence]


def _text(text: str) -> str:
    return _MARKUP.sub(r"\\\1", clean(text))


def _code(text: str) -> str:
    text = clean(text)
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
