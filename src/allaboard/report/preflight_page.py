"""A preflight as one HTML page that needs nothing beside itself: no script, no font, no address."""

from __future__ import annotations

from html import escape

from allaboard.facts import Finding, Preflight
from allaboard.report.plain_text import clean
from allaboard.report.preflight import matrix, rows, verdict

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.ok { color: #14632f; } .failed, .interrupted { color: #a01515; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #bbb; padding: .25rem .6rem; text-align: left; white-space: nowrap; }
th { background: #f0f0f0; } td.good { background: #e3f3e6; } td.bad { background: #f8d7d7; }
.finding { border-left: .3rem solid #a01515; padding: .2rem 1rem; margin: 1rem 0; }
.finding.warning { border-color: #b07a00; } .finding.info { border-color: #2a6099; }
code { background: #f0f0f0; padding: .1rem .3rem; white-space: pre-wrap; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #e8e8e8; } th, code { background: #2a2a2a; }
  .ok { color: #7fd495; } .failed, .interrupted { color: #ff9c9c; }
  td.good { background: #17351f; } td.bad { background: #4a1c1c; } th, td { border-color: #555; }
}
"""
_FINE = ("aboard", "waits", "ok")


def page(found: Preflight) -> str:
    """The whole document."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Preflight: {_text(verdict(found))}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f'<h1 class="{found.outcome}">{_text(verdict(found))}</h1>',
        f"<p>{_text(_about(found))}</p>",
        *(_finding(f) for f in found.findings),
        "<h2>Hosts</h2>",
        _table(rows(found), states=4),
    ]
    if found.links or found.usual is not None:
        parts += [
            "<h2>Links</h2>",
            "<p>From row to column: round trip of a few bytes, rate of one block.</p>",
            _table(matrix(found)),
        ]
    if found.collective:
        parts += [
            "<h2>Collective</h2>",
            f"<p>{_text(found.framework)}: {_text(found.collective)}</p>",
        ]
    parts += [f"<p>allaboard {_text(found.allaboard)}</p>", "</body></html>"]
    return "\n".join(parts) + "\n"


def _about(found: Preflight) -> str:
    when = f", {found.started}" if found.started else ""
    led = "" if found.leads else "; the links are listed where all meet"
    return f"{found.size} tasks, meeting at {found.place}{when}, seen from {found.host}{led}"


def _finding(finding: Finding) -> str:
    why = "".join(f"<li>{_text(str(e))}</li>" for e in finding.evidence)
    do = f"<p>Do: <code>{_text(finding.fix)}</code></p>" if finding.fix else ""
    return (
        f'<div class="finding {finding.severity}"><strong>{finding.rule} {_text(finding.name)}</strong>: '
        f"{_text(finding.summary)} ({finding.certainty})<ul>{why}</ul>{do}</div>"
    )


def _table(table: list[list[str]], states: int = -1) -> str:
    """``states``: the column that is coloured; all but the first where it is left out."""
    head = "".join(f'<th scope="col">{_text(c)}</th>' for c in table[0])
    body = "".join(
        f"<tr>{''.join(_cell(c, i, states) for i, c in enumerate(row))}</tr>" for row in table[1:]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, column: int, states: int) -> str:
    if states < 0 and column == 0:
        return f'<th scope="row">{_text(text)}</th>'
    kind = ""
    if column == states or (states < 0 and text not in ("-", "not tried")):
        good = text in _FINE or text.endswith("MB/s")
        kind = ' class="good"' if good else ' class="bad"'
    return f"<td{kind}>{_text(text)}</td>"


def _text(text: str) -> str:
    return escape(clean(text))
