"""A preflight as one HTML page that needs nothing beside itself: no script, no font, no address."""

from __future__ import annotations

from html import escape

from allaboard.facts import Finding, Preflight
from allaboard.report.plain_text import clean
from allaboard.report.preflight import link_matrix, member_rows, preflight_verdict

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


def render_page(preflight: Preflight) -> str:
    """Return the whole HTML document."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Preflight: {_escape(preflight_verdict(preflight))}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f'<h1 class="{preflight.outcome}">{_escape(preflight_verdict(preflight))}</h1>',
        f"<p>{_escape(_about(preflight))}</p>",
        *(_finding(f) for f in preflight.findings),
        "<h2>Hosts</h2>",
        _table(member_rows(preflight), states=4),
    ]
    if preflight.links or preflight.usual is not None:
        parts += [
            "<h2>Links</h2>",
            "<p>From row to column: round trip of a few bytes, rate of one block.</p>",
            _table(link_matrix(preflight)),
        ]
    if preflight.collective:
        parts += [
            "<h2>Collective</h2>",
            f"<p>{_escape(preflight.framework)}: {_escape(preflight.collective)}</p>",
        ]
    parts += [f"<p>allaboard {_escape(preflight.allaboard)}</p>", "</body></html>"]
    return "\n".join(parts) + "\n"


def _about(preflight: Preflight) -> str:
    started = f", {preflight.started}" if preflight.started else ""
    links_note = "" if preflight.leads else "; the links are listed where all meet"
    meeting = f"{preflight.size} tasks, meeting at {preflight.place}{started}"
    return f"{meeting}, seen from {preflight.host}{links_note}"


def _finding(finding: Finding) -> str:
    why = "".join(f"<li>{_escape(str(e))}</li>" for e in finding.evidence)
    do = f"<p>Do: <code>{_escape(finding.fix)}</code></p>" if finding.fix else ""
    return (
        f'<div class="finding {finding.severity}"><strong>{finding.rule} {_escape(finding.name)}</strong>: '
        f"{_escape(finding.summary)} ({finding.certainty})<ul>{why}</ul>{do}</div>"
    )


def _table(table: list[list[str]], states: int = -1) -> str:
    """Return an HTML table; ``states`` is the column that is coloured, -1 for all but the first."""
    head = "".join(f'<th scope="col">{_escape(c)}</th>' for c in table[0])
    body = "".join(
        f"<tr>{''.join(_cell(c, i, states) for i, c in enumerate(row))}</tr>" for row in table[1:]
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, column: int, states: int) -> str:
    if states < 0 and column == 0:
        return f'<th scope="row">{_escape(text)}</th>'
    css_class = ""
    if column == states or (states < 0 and text not in ("-", "not tried")):
        good = text in _FINE or text.endswith("MB/s")
        css_class = ' class="good"' if good else ' class="bad"'
    return f"<td{css_class}>{_escape(text)}</td>"


def _escape(text: str) -> str:
    return escape(clean(text))
