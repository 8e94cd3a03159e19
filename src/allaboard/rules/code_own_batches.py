"""Shares of the data that are of different sizes, so that the ranks meet in other numbers of rounds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import (
    FRAMEWORK_WORDS,
)
from allaboard.formats.python.flow.bindings import bindings_of
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.steps.joint_steps import JointSteps, joint_steps_of
from allaboard.formats.python.steps.own_sources import carries_agreement
from allaboard.formats.python.steps.stream_shares import leaves_in_between, stream_shares

_JOIN = re.compile(r"\.join\(\)\s*:|\bJoin\(\[|hvd\.join\(")
"""Matches what lets ranks have different numbers of steps."""
_SIZE = re.compile(
    r"world|size|num_replicas|nprocs?\b|num_processes|process_count|n_?ranks|n_?gpus", re.I
)
"""Matches names of the number of ranks."""
_EVENED_OUT = re.compile(r"(?<!:)//|%|\bpad|ceil|cycle\(|drop_last(?!\s*=\s*False)|even")
"""Matches what may give all ranks the same number of samples."""
MAX_SHARDS = 30
"""Shares of a script that are followed to the loops over them."""
_SPLITS = ("array_split", "tensor_split", "split", "chunk")
"""Functions of NumPy and PyTorch whose parts may be of different sizes."""


def _uneven_shards(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(w in facts.source for w in FRAMEWORK_WORDS) or _JOIN.search(facts.source):
        return
    script = read_script(facts)
    shards = [n for n in script.parents if isinstance(n, ast.expr) and _is_shard(script, n)]
    shards = shards[:MAX_SHARDS]
    streams = stream_shares(script)
    steps = joint_steps_of(script) if shards or streams else None
    bindings = bindings_of(script)
    if steps is not None:
        yield from _uneven_streams(script, streams, steps)
    if "DistributedDataParallel" in facts.source and ".backward(" in facts.source:
        for assignment, loop in _counts_by_rank(script):
            yield Claim(
                summary="how many items the dataset yields depends on the rank: under DDP, the ranks with "
                "fewer leave the others in their last backward",
                evidence=(script.evidence_for(assignment), script.evidence_for(loop)),
                fix="with model.join():   # around the loop over the loader; or the same number on all ranks",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(assignment),
            )
            return
    for shard in shards:
        scope: ast.AST = script.enclosing_function(shard) or script.tree
        statement = next((a for a in script.ancestors(shard) if isinstance(a, ast.stmt)), None)
        if statement is None or steps is None or _is_evened_out(script, scope, statement):
            continue
        if _is_in_sampler(script, shard):
            yield _uneven_sampler_claim(script, shard)
            return
        names = _derived_names(scope, statement)
        if names and any(_agrees_about(c, names) for _, c in script.calls):
            continue
        for loop in [n for n in script.parents if isinstance(n, ast.For)]:
            entered = steps.first_entered(loop.body)
            if entered is not None and bindings.comes_from(loop.iter, shard):
                yield _uneven_claim(script, shard, loop, *entered)
                return


def _uneven_streams(script: Script, streams: list[ast.Call], steps: JointSteps) -> Iterator[Claim]:
    """Report the first loop over a rank's share of a stream in which the ranks meet in each round."""
    bindings = bindings_of(script)
    for share in streams:
        for loop in [n for n in script.parents if isinstance(n, ast.For)]:
            entered = steps.first_entered(loop.body)
            if entered is None or leaves_in_between(loop):
                continue
            if bindings.comes_from(loop.iter, share):
                yield Claim(
                    summary="the ranks' shares of a stream have other numbers of examples: the last rounds "
                    f"of the loop of line {loop.lineno} have some ranks alone in {entered[0]}",
                    evidence=(
                        script.evidence_for(share),
                        script.evidence_for(loop),
                        script.evidence_for(entered[1]),
                    ),
                    fix="with model.join():   # around the loop; or break after one number of steps on all",
                    severity=Severity.WARNING,
                    certainty=Certainty.LIKELY,
                    where=script.place_of(share),
                )
                return


def _is_shard(script: Script, node: ast.expr) -> bool:
    """Return True for `files[rank::world]`, `islice(files, rank, None, world)`, `range(rank, n, world)` and
    `array_split(files, world)[rank]`. What has no end has no last round."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        first, step, end = node.slice.lower, node.slice.step, node.slice.upper
        return end is None and _takes_every(script, first, step)
    if isinstance(node, ast.Subscript):
        value = node.value
        if not isinstance(value, ast.Call) or script.ranks.rank_kind(node.slice) != "number":
            return False
        by_ranks = any(_SIZE.search(ast.unparse(a)) for a in value.args[1:])
        return by_ranks and ast.unparse(value.func).rpartition(".")[2] in _SPLITS
    if not isinstance(node, ast.Call):
        return False
    if script.call_name(node.func) == "itertools.islice" and len(node.args) == 4:
        end = node.args[2]
        is_whole = isinstance(end, ast.Constant) and end.value is None
        is_endless = _is_endless(script, node.args[0])
        return is_whole and not is_endless and _takes_every(script, node.args[1], node.args[3])
    if ast.unparse(node.func) == "range" and len(node.args) == 3:
        return "len(" in ast.unparse(node.args[1]) and _takes_every(
            script, node.args[0], node.args[2]
        )
    return False


def _counts_by_rank(script: Script) -> Iterator[tuple[ast.Assign, ast.For]]:
    """Yield each number that an `if` on the rank sets, with the loop that yields so many items."""
    for loop in [n for n in script.parents if isinstance(n, ast.For)]:
        function = script.enclosing_function(loop)
        if not isinstance(loop.iter, ast.Call) or ast.unparse(loop.iter.func) != "range":
            continue
        if getattr(function, "name", "") != "__iter__" or len(loop.iter.args) != 1:
            continue
        count = loop.iter.args[0]
        for assignment in [n for n in ast.walk(function or loop) if isinstance(n, ast.Assign)]:
            condition = script.parents.get(assignment)
            if ast.unparse(assignment.targets[0]) != ast.unparse(count):
                continue
            if isinstance(condition, ast.If) and script.depends_on_rank(condition.test):
                yield assignment, loop


def _is_endless(script: Script, items: ast.expr) -> bool:
    """Return True if a function of the script gives out the items in a `while True`."""
    name = ast.unparse(items.func).rpartition(".")[2] if isinstance(items, ast.Call) else ""
    return any(
        isinstance(n, ast.While) and isinstance(n.test, ast.Constant) and bool(n.test.value)
        for function in script.functions_named(name)
        for n in ast.walk(function)
    )


def _takes_every(script: Script, first: ast.expr | None, step: ast.expr | None) -> bool:
    """Return True if a share begins at the rank, and goes on by the number of ranks."""
    if first is None or step is None:
        return False
    return script.ranks.rank_kind(first) == "number" and bool(_SIZE.search(ast.unparse(step)))


def _is_evened_out(script: Script, scope: ast.AST, statement: ast.stmt) -> bool:
    """Return True if something in the function or the class may make the shares equal."""
    owner = next((a for a in script.ancestors(statement) if isinstance(a, ast.ClassDef)), scope)
    first = getattr(owner, "lineno", 1)
    last = getattr(owner, "end_lineno", None) or len(script.lines)
    numbers = set(range(first, last + 1)) - set(
        range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        if isinstance(statement, ast.Assign)
        else ()
    )
    return any(_EVENED_OUT.search(script.lines[n - 1].partition("#")[0]) for n in numbers)


def _is_in_sampler(script: Script, shard: ast.expr) -> bool:
    """Return True if a sampler's `__iter__` gives out the share."""
    function = script.enclosing_function(shard)
    owner = script.parents.get(function) if function is not None else None
    return (
        isinstance(owner, ast.ClassDef)
        and function is not None
        and function.name == "__iter__"
        and any(ast.unparse(base).endswith("Sampler") for base in owner.bases)
    )


def _uneven_sampler_claim(script: Script, shard: ast.expr) -> Claim:
    return Claim(
        summary="this sampler gives some ranks one more than others where their number is no multiple of the "
        "ranks': under DDP, the ranks with fewer leave the others in their last backward",
        evidence=(script.evidence_for(shard),),
        fix="batches = batches[: len(batches) // num_replicas * num_replicas]   # before each takes one",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(shard),
    )


def _derived_names(scope: ast.AST, assignment: ast.stmt) -> set[str]:
    """Return the variables that the share is assigned to, and those that are made of them."""
    names: set[str] = set()
    following = [n for n in ast.walk(scope) if isinstance(n, ast.Assign)]
    for statement in sorted(following, key=lambda n: n.lineno):
        used = {ast.unparse(n) for n in ast.walk(statement.value) if isinstance(n, ast.expr)}
        if statement is assignment or used & names:
            names |= {ast.unparse(target) for target in statement.targets}
    return names


def _agrees_about(call: ast.Call, names: set[str]) -> bool:
    """Return True if a call may make the ranks agree on something that is made of their shares."""
    if not carries_agreement(ast.unparse(call.func)):
        return False
    return bool({ast.unparse(n) for n in ast.walk(call) if isinstance(n, ast.expr)} & names)


def _uneven_claim(
    script: Script, shard: ast.expr, loop: ast.For, entered: str, call: ast.Call
) -> Claim:
    return Claim(
        summary=f"the ranks' shares differ by one where their number is no multiple of the ranks': the last "
        f"round of the loop of line {loop.lineno} has some ranks alone in {entered}",
        evidence=(
            script.evidence_for(shard),
            script.evidence_for(loop),
            script.evidence_for(call),
        ),
        fix="items = items[: len(items) // world_size * world_size]   # before each rank takes its share",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(shard),
    )


_HEAD = (
    "import os\nimport torch\nimport torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    'dist.init_process_group("nccl")\nrank, world = dist.get_rank(), dist.get_world_size()\n'
    "model = DDP(net)\n"
)
_SHARE = (
    _HEAD + "mine = files[rank::world]\nfor name in mine:\n    loss = model(load(name))\n"
    "    loss.backward()\n"
)
_COUNTED = (
    _HEAD
    + "class Items(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        n = 9\n"
    "        if dist.get_rank() == 0:\n            n = 8\n        for i in range(n):\n"
    "            yield torch.randn(4)\nfor x in DataLoader(Items()):\n    model(x).sum().backward()\n"
)
_SAMPLER = (
    "from torch.utils.data import Sampler\nclass Batches(Sampler):\n    def __iter__(self):\n"
    "        batches = list(self.inner)\n"
    "        for i in range(self.rank, len(batches), self.world_size):\n            yield batches[i]\n"
)
_STREAM = (
    _HEAD + "from datasets import load_dataset\n"
    "from datasets.distributed import split_dataset_by_node\n"
    "lines = load_dataset('text', data_files=files, streaming=True, split='train')\n"
    "lines = split_dataset_by_node(lines, rank, world)\n"
    "for batch in torch.utils.data.DataLoader(lines, batch_size=8):\n"
    "    model(batch).sum().backward()\n"
)
_UNEVEN_STREAM = (
    "the ranks' shares of a stream have other numbers of examples: the last rounds of the loop of line 12 "
    "have some ranks alone in backward"
)
_UNEVEN = (
    "the ranks' shares differ by one where their number is no multiple of the ranks': the last round of the "
    "loop of line 9 has some ranks alone in backward"
)
RULES = {
    "code060_uneven_shards": script_rule(
        page="""The ranks take shares of different sizes, and meet in each round of the loop over them.

## Why it matters
`files[rank::world_size]` gives the first ranks one file more, unless the number of files is a multiple of the
number of ranks. `split_dataset_by_node` gives each rank whole files of a stream, with as many examples as
they have. In the last round only these ranks come to the collective or to the backward of DDP: they
wait for the others, which have left the loop, until the timeout.

## What to do
Cut the list to a multiple of the world size first, use a DistributedSampler, which pads it, or enter the loop
`with model.join():`.
""",
        check=_uneven_shards,
        fires_on={
            "each rank takes every Nth file (`files[rank::world]`)": (_SHARE, _UNEVEN),
            "each rank takes its part of `torch.split`": (
                _SHARE.replace("files[rank::world]", "torch.split(files, ceil(n / world))[rank]"),
                _UNEVEN,
            ),
            "rank 0 yields fewer items of a dataset than the others": (
                _COUNTED,
                "how many items the dataset yields depends on the rank: under DDP, the ranks with fewer "
                "leave the others in their last backward",
            ),
            "each rank takes its share of a stream of `datasets`": (_STREAM, _UNEVEN_STREAM),
            "a sampler gives each rank every Nth batch": (
                _SAMPLER,
                "this sampler gives some ranks one more than others where their number is no multiple of "
                "the ranks': under DDP, the ranks with fewer leave the others in their last backward",
            ),
            "each rank takes every Nth file by `islice`": (
                _SHARE.replace("files[rank::world]", "islice(files, rank, None, world)").replace(
                    "import os", "from itertools import islice"
                ),
                _UNEVEN,
            ),
        },
        silent_on={
            "the list is first cut to a multiple of the number of ranks": _SHARE.replace(
                "mine =", "files = files[: len(files) // world * world]\nmine ="
            ),
            "a dataset that is no stream, of which every rank gets as much": _STREAM.replace(
                "streaming=True, ", ""
            ),
            "a loop over a stream that ends after one number of steps on all ranks": _STREAM.replace(
                "    model(", "    if step() >= max_steps:\n        break\n    model("
            ),
            "accelerate deals out the batches of a stream": "import accelerate\n" + _STREAM,
            "a loop without a backward in it": _SHARE.replace("loss.backward()", "print(loss)"),
            "a loop in `with model.join()`": _SHARE.replace(
                "for name", "with model.join():\n  for name"
            ),
            "the ranks agree on the smallest number of files": _SHARE.replace(
                "for name in mine", "n = least(all_gather(len(mine)))\nfor name in mine[:n]"
            ),
            "a sampler pads the batches to a multiple of the number of ranks": _SAMPLER.replace(
                "        for i",
                "        batches += batches[: -len(batches) % self.world_size]\n        for i",
            ),
            "each rank takes its part of a text that is split": _SHARE.replace(
                "files[rank::world]", "name.split('/')[rank]"
            ),
            "a step of 2 that is not the number of ranks (`files[rank::2]`)": _SHARE.replace(
                "rank::world", "rank::2"
            ),
            "each rank takes its share of items that have no end": _SHARE.replace(
                "files[rank::world]", "islice(endless(), rank, None, world)"
            ).replace(
                "import os",
                "from itertools import islice\ndef endless():\n    while True:\n        yield 1",
            ),
            "all ranks yield the same number of items": _COUNTED.replace(
                "if dist.get_rank() == 0", "if self.short"
            ),
            "rank 0 yields fewer items, and the loop is joined": _COUNTED.replace(
                "for x in", "with model.join():\n  for x in"
            ),
        },
    ),
}
