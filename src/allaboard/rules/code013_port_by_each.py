"""Each process chooses MASTER_PORT or MASTER_ADDR by itself.

## Why it matters
A random or free port that is chosen inside the process which then joins is another one in each of
them: rank 0 listens on its own, the others knock on theirs, and all wait.

## What to do
Choose it once, in the launcher or the parent process, and hand it to all: torchrun and
`allaboard run` do that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.script import read_script

_CHOICE = re.compile(r"random|randint|free_port|find_port|open_port|getpid|gethostname|time\.time")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    inits = script.called("torch.distributed.init_process_group")
    homes = {script.function(call) for call in inits}
    spawned = bool(script.methods("spawn", "Process")) or "spawn(" in facts.source
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        target = ast.unparse(node.targets[0])
        name = next((n for n in ("MASTER_PORT", "MASTER_ADDR") if f"'{n}'" in target), "")
        if not name or "environ" not in target or not _CHOICE.search(ast.unparse(node.value)):
            continue
        home = script.function(node)
        if home not in homes or script.rank_condition(node) is not None:
            continue
        if home is None and spawned:
            continue
        yield Claim(
            summary=f"each process chooses {name} by itself before it joins: no two will agree",
            evidence=(script.evidence(node), script.evidence(inits[0])),
            fix=f'os.environ["{name}"]   # set once, by the launcher, for all ranks',
            certainty=Certainty.LIKELY,
            where=script.place(node),
        )


_SETUP = """import os, random
import torch.distributed as dist
import torch.multiprocessing as mp
def setup(rank):
    INSIDE
    dist.init_process_group("gloo", rank=rank, world_size=2)
"""
_RANDOM = "os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "in each process": (
            ScriptFacts(source=_SETUP.replace("INSIDE", _RANDOM)),
            "each process chooses MASTER_PORT by itself before it joins: no two will agree",
        )
    },
    silent_on={
        "in the parent": ScriptFacts(
            source=_SETUP.replace("INSIDE", "pass")
            + f"def main():\n    {_RANDOM}\n    mp.spawn(setup, nprocs=2)\n"
        ),
        "a constant": ScriptFacts(
            source=_SETUP.replace("INSIDE", "os.environ['MASTER_PORT'] = '29500'")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
