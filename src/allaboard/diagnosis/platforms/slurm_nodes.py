"""Nodes that Slurm does not use: `scontrol show node`, `sinfo -R` and the tables of `sinfo`.

A job that runs on a node which is being drained goes on there, and a table in a job's own log shows nodes of
others. So only what was pasted by itself counts, and only nodes without a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.analysis.log_ends.program_advice import program_advice
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Severity, Speaker, Testimony

_BLOCK = re.compile(r"^[ \t]*NodeName=(?P<node>[\w.-]{1,255})\b", re.MULTILINE)
_STATE = re.compile(r"\bState=(?P<state>[A-Z][A-Z_+*~#!%$@^-]{2,80})")
_REASON = re.compile(
    r"\bReason=(?P<reason>[^\n]{1,200}?)(?: \[(?P<by>[\w.@:-]{1,80})\])?[ \t]*$", re.MULTILINE
)
_HEAD_OF_REASONS = re.compile(
    r"^[ \t]*REASON +USER +TIMESTAMP +(?:STATE +)?NODELIST *$", re.MULTILINE
)
_ROW_OF_REASONS = re.compile(
    r"^(?P<reason>\S[^\n]{0,120}?) +[\w.-]{1,40}(?:\(\d+\))? +\d{4}-\d\d-\d\dT[\d:]{8} +(?:\S{3,20} +)?"
    r"(?P<node>[A-Za-z][\w.,\[\]-]{0,300})$"
)
_HEAD = re.compile(
    r"^[ \t]*(?=[^\n]*\bNODELIST\b)(?=[^\n]*\bSTATE\b)[A-Z][A-Z_:() ]+$", re.MULTILINE
)
_BAD_STATE = re.compile(r"(?:down|drain(?:ed)?|fail|inval|unknown?)[*~#!%$@^-]?")
_DOWN = re.compile(
    r"DOWN|NOT_RESPONDING|NO_RESPOND|FAIL|INVAL|UNKNOWN|[a-z]+\*$|^(?:down|fail|inval|unk)"
)
_NO_REASON = ("none", "(null)", "unknown")
MAX_OTHER_LINES = 6
"""Lines besides a table (a prompt, a date) of a text that is nothing but the table."""
MAX_NAMED = 3
"""Nodes that are named."""
_OWN_HAND = re.compile(r"maint|reboot|upgrade|admin|reserv|update", re.IGNORECASE)
"""Words of a reason that a person gave on purpose."""


class _Node(NamedTuple):
    """One node that takes no job."""

    name: str
    state: str
    reason: str
    line: int
    text: str


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    nodes = [*_blocks(text)] if "NodeName=" in text and "State=" in text else []
    nodes = nodes or ([*_reasons(text), *_rows(text)] if "NODELIST" in text else [])
    return Testimony(heard=(_heard(exhibit, nodes),)) if nodes else None


def _blocks(text: str) -> Iterator[_Node]:
    """Yield the nodes of `scontrol show node` on which no job runs and none can."""
    begins = list(_BLOCK.finditer(text))
    for begin, next_begin in zip(begins, [*begins[1:], None], strict=True):
        block = text[
            begin.start() : next_begin.start() if next_begin is not None else begin.start() + 4000
        ]
        state, reason = _STATE.search(block), _REASON.search(block)
        if state is None or ("CfgTRES=" not in block and "RealMemory=" not in block):
            continue
        is_used = re.match(r"ALLOC|MIX|COMP", state["state"]) is not None
        if re.search(r"DOWN(?!_)|NOT_RESPONDING|NO_RESPOND|FAIL|INVAL", state["state"]) or (
            "DRAIN" in state["state"] and not is_used
        ):
            number = text.count("\n", 0, begin.start() + state.start())
            shown = " ".join(filter(None, (state[0], reason[0].strip() if reason else "")))
            yield _Node(
                begin["node"], state["state"], reason["reason"] if reason else "", number, shown
            )


def _reasons(text: str) -> Iterator[_Node]:
    """Yield the rows of `sinfo -R`."""
    head = _HEAD_OF_REASONS.search(text)
    if head is None:
        return
    first_line = text.count("\n", 0, head.end()) + 1
    for number, line in enumerate(text.split("\n")[first_line:], first_line):
        if row := _ROW_OF_REASONS.match(line.strip()):
            yield _Node(row["node"], "", row["reason"].strip(), number, line.strip())


def _rows(text: str) -> Iterator[_Node]:
    """Yield the nodes of a table of `sinfo` that is all there is."""
    head = _HEAD.search(text)
    lines = text.split("\n")
    if head is None or _HEAD_OF_REASONS.search(text):
        return
    titles = head[0].split()
    first_line = text.count("\n", 0, head.end()) + 1
    rows = [
        (n, line.split()) for n, line in enumerate(lines[first_line:], first_line) if line.strip()
    ]
    table = [(n, cells) for n, cells in rows if len(cells) >= len(titles)]
    if sum(bool(line.strip()) for line in lines) - len(table) - 1 > MAX_OTHER_LINES:
        return
    for number, cells in table:
        state, node = cells[titles.index("STATE")], cells[titles.index("NODELIST")]
        reason = " ".join(cells[titles.index("REASON") :]) if titles[-1] == "REASON" else ""
        if _BAD_STATE.fullmatch(state):
            yield _Node(node, state, reason, number, lines[number].strip())


def _heard(exhibit: Exhibit, nodes: list[_Node]) -> Heard:
    """Return what is wrong with the nodes; of several, those that are down come before others."""
    by_name = {node.name: node for node in nodes}
    ordered = sorted(by_name.values(), key=lambda n: (not _DOWN.search(n.state), n.line))
    worst_node = ordered[0]
    reason = worst_node.reason if worst_node.reason.lower() not in _NO_REASON else ""
    alike = [
        n.name for n in ordered if n.reason == worst_node.reason and n.state == worst_node.state
    ]
    more = f" and {len(alike) - MAX_NAMED} more" if len(alike) > MAX_NAMED else ""
    other_nodes = (
        f"; {len(ordered) - len(alike)} others for other reasons"
        if len(ordered) > len(alike)
        else ""
    )
    state = f" ({worst_node.state})" if worst_node.state else ""
    why = f": {reason}" if reason else ", and says no reason"
    down = bool(_DOWN.search(worst_node.state)) or "not responding" in reason.lower()
    return Heard(
        rule="EXIT010" if down else "JOIN001",
        says=f"Slurm starts nothing on {', '.join(alike[:MAX_NAMED])}{more}{state}{why}{other_nodes}",
        speakers=(Speaker(-1, worst_node.text[:300], exhibit.place_of_line(worst_node.line)),),
        fix=_advice(worst_node.name.partition(",")[0], reason, down=down),
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        explains=("LOG012",),
    )


def _advice(node: str, reason: str, *, down: bool) -> str:
    node = "NODE" if "[" in node else node
    if reason and (advice := program_advice(reason)):
        return (
            advice.replace("that node", node)
            .replace("=NODE", f"={node}")
            .replace(" NODE", f" {node}")
        )
    if _OWN_HAND.search(reason):
        return (
            f"scontrol show res; scontrol show node {node}   # somebody took it out on purpose: wait for "
            f"it, or --exclude={node}"
        )
    if down:
        return (
            f"ssh {node} 'uptime; systemctl status slurmd'; nc -vz {node} 6818   # start it, open its "
            f"port; then scontrol update NodeName={node} State=RESUME; without it: --exclude={node}"
        )
    return (
        f"scontrol show node {node} | grep -i reason; ssh {node} journalctl -u slurmd -n 50   # mend what "
        f"it says; then scontrol update NodeName={node} State=RESUME; without it: --exclude={node}"
    )


READER = LogReader(read=read_log)
