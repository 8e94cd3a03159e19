"""One rank downloads while the others wait in a barrier with a short timeout.

## Why it matters
The barrier's timeout is that of the group. If the download takes longer, the waiting ranks fail and blame
the network. On the second run it works, since the files are there; on new hosts it fails again.

## What to do
Give the group a timeout that outlasts the download, or download before `init_process_group`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script

SHORT_TIMEOUT_S = 300.0
"""A timeout below this many seconds counts as short for a download."""

_UNIT_SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "milliseconds": 1e-3,
}


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    inits = script.calls_of("torch.distributed.init_process_group")
    if not inits or not script.calls_of("torch.distributed.barrier"):
        return
    seconds = _timedelta_seconds(script, call_argument(inits[0], "timeout"))
    if seconds is None or seconds >= SHORT_TIMEOUT_S:
        return
    for name, call in script.calls:
        fetches = "download" in name.lower() or any(
            k.arg == "download" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in call.keywords
        )
        if fetches and script.rank_condition(call) is not None and call.lineno > inits[0].lineno:
            yield Claim(
                summary=f"one rank downloads while the others wait in a barrier of {seconds:.0f} s",
                evidence=(script.evidence_for(call), script.evidence_for(inits[0])),
                fix="init_process_group(…, timeout=timedelta(minutes=30))",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _timedelta_seconds(script: Script, node: ast.expr | None) -> float | None:
    """Return the length in seconds of a literal timedelta, or None."""
    if not isinstance(node, ast.Call) or not script.call_name(node.func).endswith("timedelta"):
        return None
    total = 0.0
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg not in _UNIT_SECONDS or not isinstance(value, ast.Constant):
            return None
        if not isinstance(value.value, (int, float)):
            return None
        total += value.value * _UNIT_SECONDS[keyword.arg]
    return total if node.keywords else None


_SOURCE = """import torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
if rank == 0:
    MNIST("data", download=True)
dist.barrier()
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "30 s": (
            ScriptFacts(source=_SOURCE),
            "one rank downloads while the others wait in a barrier of 30 s",
        )
    },
    silent_on={
        "half an hour": ScriptFacts(source=_SOURCE.replace("seconds=30", "minutes=30")),
        "the default": ScriptFacts(source=_SOURCE.replace(", timeout=timedelta(seconds=30)", "")),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
