"""A rank takes its part of the data by its number on the host, out of as many parts as the job has ranks.

## Why it matters
The number on the host begins at 0 on every host. On two hosts of four, rank 4 reads the same part as rank
0, and the parts 4 to 7 are read by nobody. On one host the two numbers are equal, so nothing shows there.

## What to do
Take the part by the rank among all hosts: `hvd.rank()`, `dist.get_rank()`, `$RANK`. The number on the host
is for the choice of the GPU.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.flow.host_numbers import is_number_of_ranks, is_number_on_host
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_SAMPLERS = ("torch.utils.data.DistributedSampler", "datasets.distributed.split_dataset_by_node")
_NOT_DATA = re.compile(
    r"(?i)(?<![a-z])(?:colou?rs?|palette|cores|cpus|devices|gpus|ports?|markers?)\b"
)
"""Matches what a slice may divide among the ranks of a host, or need not divide at all."""
_ONE_HOST = re.compile(
    r"init_process_group\([^\n]{0,120}\brank\s*=\s*(?:args\.)?local_rank\b"
    r"|assert\b.{0,80}LOCAL_WORLD_SIZE|nnodes\s*=\s*['\"]?1\b|num_nodes\s*=\s*1\b|--standalone"
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not re.search(r"local_rank|LOCAL_RANK|LOCALID|local_process_index", facts.source):
        return
    if _ONE_HOST.search(facts.source):
        return
    script = read_script(facts)
    for node, count, index in _parts(script):
        if not is_number_on_host(script, index) or not is_number_of_ranks(script, count):
            continue
        yield Claim(
            summary=f"this rank takes its part of the data by its number on the host, "
            f"{ast.unparse(index)[:40]}, out of {ast.unparse(count)[:40]} parts: on several hosts, ranks of "
            "the same number read the same part, and some parts are read by nobody",
            evidence=(script.evidence_for(node),),
            fix=f"{_global_rank(script)} in place of {ast.unparse(index)[:60]}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


def _parts(script: Script) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Yield where data is divided, with the number of parts and the part that is taken."""
    for name, call in script.calls:
        count = index = None
        if name in _SAMPLERS:
            is_split = name != _SAMPLERS[0]
            count = call_argument(
                call, "world_size" if is_split else "num_replicas", 2 if is_split else 1
            )
            index = call_argument(call, "rank", 1 if is_split else 2)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "shard":
            count = call_argument(call, "num_shards", 0)
            index = call_argument(call, "index", 1)
        elif name == "itertools.islice" and len(call.args) == 4:
            index, count = call.args[1], call.args[3]
        if count is not None and index is not None:
            yield call, count, index
    for node in script.parents:
        if isinstance(node, ast.Slice) and node.lower is not None and node.step is not None:
            parent = script.parents[node]
            sliced = parent.value if isinstance(parent, ast.Subscript) else None
            if sliced is not None and (
                _NOT_DATA.search(ast.unparse(sliced)) or _is_range(script, sliced)
            ):
                continue
            yield node.lower, node.step, node.lower


def _is_range(script: Script, node: ast.expr) -> bool:
    """Return True for `range(8)[rank::4]`: numbers, of which nobody reads anything."""
    value = resolve(script, node)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "list" and value.args:
        value = value.args[0]
    return (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) == "range"
        and "len(" not in ast.unparse(value)
    )


def _global_rank(script: Script) -> str:
    names = set(script.names.values())
    if any("horovod" in n for n in names):
        return "hvd.rank()"
    return "jax.process_index()" if "jax" in names else "dist.get_rank()"


_HOROVOD = "import horovod.tensorflow as hvd\nhvd.init()\nfiles = files.shard(hvd.size(), hvd.local_rank())\n"
_SAMPLER = (
    "import os\nimport torch.distributed as dist\nfrom torch.utils.data import DistributedSampler\n"
    "local_rank = int(os.environ['LOCAL_RANK'])\n"
    "sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=local_rank)\n"
)
_SLICE = (
    "import os\nimport torch.distributed as dist\nlocal_rank = int(os.environ['LOCAL_RANK'])\n"
    "files = names[local_rank :: dist.get_world_size()]\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a dataset is divided by `hvd.local_rank()`": (
            ScriptFacts(source=_HOROVOD),
            "this rank takes its part of the data by its number on the host, hvd.local_rank(), out of "
            "hvd.size() parts: on several hosts, ranks of the same number read the same part, and some parts "
            "are read by nobody",
        ),
        "a sampler gets the local rank": (
            ScriptFacts(source=_SAMPLER),
            "this rank takes its part of the data by its number on the host, local_rank, out of "
            "dist.get_world_size() parts: on several hosts, ranks of the same number read the same part, and "
            "some parts are read by nobody",
        ),
        "a list is sliced from the local rank": (
            ScriptFacts(source=_SLICE),
            "this rank takes its part of the data by its number on the host, local_rank, out of "
            "dist.get_world_size() parts: on several hosts, ranks of the same number read the same part, and "
            "some parts are read by nobody",
        ),
    },
    silent_on={
        "by the rank among all": ScriptFacts(source=_HOROVOD.replace("local_rank", "rank")),
        "by both numbers of the host": ScriptFacts(
            source=_HOROVOD.replace("hvd.size()", "hvd.local_size()")
        ),
        "the local rank chooses the GPU": ScriptFacts(
            source=_SAMPLER.replace("rank=local_rank", "rank=dist.get_rank()")
            + "torch.cuda.set_device(local_rank)\n"
        ),
        "a job whose ranks are those of one host": ScriptFacts(
            source=_SAMPLER + "dist.init_process_group(rank=local_rank, world_size=8)\n"
        ),
        "numbers that are no data are divided": ScriptFacts(
            source=_SLICE.replace("names[", "range(64)[")
        ),
        "cores are divided": ScriptFacts(source=_SLICE.replace("names[", "cores[")),
        "a job of one host": ScriptFacts(source="nnodes = 1\n" + _SLICE),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
