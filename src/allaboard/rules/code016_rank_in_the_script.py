"""The script sets its own RANK to a fixed number, in every process.

## Why it matters
`os.environ["RANK"] = "0"` replaces what the launcher said: every process is rank 0. The second one cannot
bind the port, or all wait for rank 1, which does not exist.

## What to do
Leave RANK to the launcher (torchrun, `allaboard run`), or take it from an argument. A world of one process
is fine for a trial: set WORLD_SIZE to 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "RANK" not in facts.source:
        return
    script = read_script(facts)
    if not script.calls_of("torch.distributed.init_process_group"):
        return
    set_here = dict(_top_level_numbers(script))
    rank, size = set_here.get("RANK"), set_here.get("WORLD_SIZE")
    if rank is None or size is None or size[1] < 2:
        return
    node, number = rank
    yield Claim(
        summary=f"the script sets RANK itself: every process that runs it is rank {number} of {size[1]}",
        evidence=(script.evidence_for(node), script.evidence_for(size[0])),
        fix='rank = int(os.environ["RANK"])   # as the launcher set it',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(node),
    )


def _top_level_numbers(script: Script) -> Iterator[tuple[str, tuple[ast.Assign, int]]]:
    """Yield the variables that the top level of the script sets to a number, unconditionally."""
    for node in script.tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        target, value = ast.unparse(node.targets[0]), node.value
        name = next((n for n in ("RANK", "WORLD_SIZE") if target == f"os.environ['{n}']"), "")
        text = str(value.value) if isinstance(value, ast.Constant) else ""
        if name and text.isascii() and text.isdecimal() and len(text) < 9:
            yield name, (node, int(text))


_SET = """import os
import torch.distributed as dist
os.environ["RANK"] = "0"
os.environ["WORLD_SIZE"] = "2"
dist.init_process_group("gloo")
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "rank 0 everywhere": (
            ScriptFacts(source=_SET),
            "the script sets RANK itself: every process that runs it is rank 0 of 2",
        )
    },
    silent_on={
        "a world of one process": ScriptFacts(source=_SET.replace('"2"', '"1"')),
        "from an argument": ScriptFacts(source=_SET.replace('"0"', "sys.argv[1]")),
        "only if it is not set": ScriptFacts(
            source=_SET.replace(
                'os.environ["RANK"] = "0"',
                'if "RANK" not in os.environ:\n    os.environ["RANK"] = "0"',
            )
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
