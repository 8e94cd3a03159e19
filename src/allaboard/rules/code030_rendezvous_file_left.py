"""The ranks meet in a file that each host has for itself, or that nothing removes.

## Why it matters
Every rank has to open the same file: `/tmp` and `/dev/shm` are other folders on every host, and in every
container, so that each host's ranks wait for the others. And the file must be new: one that an aborted run
has left still holds that run's ranks, and the next run hangs or fails in the init. PyTorch removes it only
if the job ends well.

## What to do
Name a file on a shared file system, with another name in each run, such as one that contains the job's id. Or
meet by address: `env://`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_OWN_FOLDERS = re.compile(r"/(?:tmp|var/tmp|dev/shm|run)/")
_REMOVES = re.compile(
    r"os\.remove|os\.unlink|\.unlink\(|rmtree|tempfile|mkstemp|uuid|JOB_ID|getpid"
)
"""Matches scripts that remove the file, or name another one for each run."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_process_group" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of("torch.distributed.init_process_group"):
        stated = call_argument(call, "init_method", 1)
        option = option_of(script, stated)
        if option is not None and option.default is not None:
            stated = option.default
        url = evaluate(script, stated)
        if not isinstance(url, str) or not url.startswith("file://"):
            continue
        path = url.removeprefix("file://").partition("?")[0]
        kept = not _REMOVES.search(facts.source)
        own = _OWN_FOLDERS.match(path) is not None
        several_hosts = own and _is_on_several_hosts(script, facts.source)
        if not path.startswith("/") or not (kept or several_hosts):
            continue
        yield Claim(
            summary=f"the ranks meet in {path}, which each host has for itself"
            if several_hosts
            else f"the ranks meet in {path}, and nothing removes it: the next run finds it again",
            evidence=(
                script.evidence_for(call),
                *([script.evidence_for(option.call)] if option is not None else []),
            ),
            fix="init_method=f\"file:///SHARED/rendezvous-{os.environ['JOB_ID']}\""
            if several_hosts
            else f'rm -f {path}   # before each run, or init_method="env://"',
            severity=Severity.WARNING if several_hosts else Severity.INFO,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_on_several_hosts(script: Script, source: str) -> bool:
    """Return True if the script counts hosts, or takes its rank from a launcher of several."""
    if re.search(
        r"\bnnodes\b|num_nodes|node_rank|SLURM_(?:PROCID|NNODES|NODEID)|OMPI_COMM", source
    ):
        return not any(
            isinstance(n, ast.Call) and ast.unparse(n.func).endswith("spawn")
            for n in script.parents
        )
    return False


_SCRIPT = """import os
import torch.distributed as dist
PLACE = "file:///tmp/meet"
dist.init_process_group("gloo", init_method=PLACE, rank=int(os.environ[RANK]), world_size=8)
"""

_OPTION = """import argparse
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--init-method", default="file:///shared/meet")
opt = parser.parse_args()
dist.init_process_group("gloo", init_method=opt.init_method, rank=opt.rank, world_size=8)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a file in a shared folder that nothing removes": (
            ScriptFacts(source=_SCRIPT.replace("RANK", "'R'").replace("/tmp", "/shared")),
            "the ranks meet in /shared/meet, and nothing removes it: the next run finds it again",
        ),
        "an option of the command line has a shared file as its default": (
            ScriptFacts(source=_OPTION),
            "the ranks meet in /shared/meet, and nothing removes it: the next run finds it again",
        ),
        "a file in /tmp for ranks on several hosts": (
            ScriptFacts(source=_SCRIPT.replace("RANK", "'SLURM_PROCID'")),
            "the ranks meet in /tmp/meet, which each host has for itself",
        ),
    },
    silent_on={
        "an option of the command line has `env://` as its default": ScriptFacts(
            source=_OPTION.replace("file:///shared/meet", "env://")
        ),
        "a file with the job's id in its name": ScriptFacts(
            source=_SCRIPT.replace("RANK", "'R'").replace('meet"', 'meet" + os.environ["JOB_ID"]')
        ),
        "a file that the script removes": ScriptFacts(
            source=_SCRIPT.replace("RANK", "'R'") + "os.remove('/tmp/meet')\n"
        ),
        "ranks that meet at an address (`env://`)": ScriptFacts(
            source=_SCRIPT.replace("RANK", "'R'").replace("file:///tmp/meet", "env://")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
