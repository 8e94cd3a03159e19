"""Mistakes in what ranks pass to a transfer, and in when they use its outcome: each rule reports one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import TORCH_COLLECTIVES
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.own_sizes import own_size
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_TORCH = "torch.distributed."
_SAME_SIZE = {
    "all_reduce": ("tensor", 0),
    "broadcast": ("tensor", 0),
    "reduce": ("tensor", 0),
    "gather": ("tensor", 0),
    "all_gather": ("tensor", 1),
    "broadcast_object_list": ("object_list", 0),
}
"""Collectives whose argument has one size on all ranks: its name and position."""
_ONE_RANKS_LIST = {
    "gather": ("gather_list", "dst"),
    "gather_object": ("object_gather_list", "dst"),
    "scatter": ("scatter_list", "src"),
}
"""Collectives with a list, the second argument, that one rank alone may pass: its name, and that rank's."""
_MOVES = ("cuda", "to", "float", "half", "long")
"""Methods that move or convert a tensor."""
_TENSOR_MAKERS = ("zeros", "ones", "empty", "rand", "randn", "full")


def _other_sizes(facts: ScriptFacts) -> Iterator[Claim]:
    if "torch.distributed" not in facts.source:
        return
    script = read_script(facts)
    for name, (argument, position) in _SAME_SIZE.items():
        for call in script.calls_of(_TORCH + name):
            passed = call_argument(call, argument, position)
            if passed is None or script.rank_condition(call) is not None:
                continue
            own = own_size(script, call, passed) if argument == "tensor" else None
            if own is not None:
                yield Claim(
                    summary=f"{ast.unparse(passed)[:40]} {own.reason}, another number on each rank: {name} "
                    "needs one size on all",
                    evidence=(script.evidence_for(call), script.evidence_for(own.source)),
                    fix=f"gather the sizes first, and pad {ast.unparse(passed)[:40]} to the largest",
                    certainty=Certainty.LIKELY,
                    where=script.place_of(call),
                )
                continue
            sizes = {v: _size(script, v) for v in _values_by_rank(script, passed)}
            if len(sizes) != 2 or None in sizes.values() or len(set(sizes.values())) == 1:
                continue
            yield Claim(
                summary=f"{ast.unparse(passed)} has another size on some ranks, "
                f"{' and '.join(map(str, sizes.values()))}: {name} needs one size on all",
                evidence=(script.evidence_for(call), *map(script.evidence_for, sizes)),
                fix=f"pad {ast.unparse(passed)} to one size before {name}",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _values_by_rank(script: Script, node: ast.expr) -> list[ast.expr]:
    """Return the two values of a variable between which a condition on the rank decides; [] if none does."""
    if not isinstance(node, ast.Name):
        return []
    values = [v for v in script.ranks.bound_values(node) if v is not None]
    if len(values) == 1 and isinstance(values[0], ast.IfExp):
        choice = values[0]
        return [choice.body, choice.orelse] if script.depends_on_rank(choice.test) else []
    conditions = [script.rank_condition(v) for v in values]
    is_choice = len(values) == 2 and conditions[0] is not None and conditions[0] is conditions[1]
    return sorted(values, key=lambda v: v.lineno) if is_choice else []


def _size(script: Script, value: ast.expr) -> str | None:
    """Return the shape of a new tensor, or the length of a list, as a text; None if it is not known."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return str(len(value.elts)) if not any(_is_unpacked(e) for e in value.elts) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        count = integer(script, value.right)
        is_single = isinstance(value.left, ast.List) and len(value.left.elts) == 1
        return str(count) if is_single and count is not None else None
    maker = _unmoved(value)
    if maker is None or not maker.args or _kind(maker) not in _TENSOR_MAKERS:
        return None
    shape = maker.args[0]
    numbers = [
        integer(script, n)
        for n in (shape.elts if isinstance(shape, (ast.List, ast.Tuple)) else maker.args)
    ]
    return None if None in numbers else f"({', '.join(map(str, numbers))})"


def _unmoved(value: ast.expr) -> ast.Call | None:
    """Return the call that makes a tensor, without what moves or converts it."""
    while isinstance(value, ast.Call):
        if not isinstance(value.func, ast.Attribute) or _kind(value) not in _MOVES:
            return value
        value = value.func.value
    return None


def _is_unpacked(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _list_on_all_ranks(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(f"{name}(" in facts.source for name in _ONE_RANKS_LIST):
        return
    script = read_script(facts)
    for name, (argument, role) in _ONE_RANKS_LIST.items():
        for call in script.calls_of(_TORCH + name):
            passed = call_argument(call, argument, 1)
            if passed is None or script.rank_condition(call) is not None:
                continue
            list_expression = _list_of_all(script, passed)
            if list_expression is None:
                continue
            owner = call_argument(call, role)
            text, rank = ast.unparse(passed), ast.unparse(owner) if owner is not None else "0"
            yield Claim(
                summary=f"every rank passes {argument} to {name}, which only the rank of {role} may do: the "
                "others end with a ValueError, and that one waits for them",
                evidence=(script.evidence_for(call), script.evidence_for(list_expression)),
                fix=f"{argument}={text} if dist.get_rank() == {rank} else None",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _list_of_all(script: Script, passed: ast.expr) -> ast.expr | None:
    """Return the list that all ranks pass; None if some may pass none."""
    values = script.ranks.bound_values(passed) if isinstance(passed, ast.Name) else [passed]
    lists = [v for v in values if v is not None and _is_list(v)]
    if len(values) != 1 or not lists or script.rank_condition(lists[0]) is not None:
        return None
    return lists[0]


def _is_list(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return isinstance(node.left, ast.List)
    return isinstance(node, ast.ListComp) or (isinstance(node, ast.List) and bool(node.elts))


def _not_waited_for(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "async_op" not in source and "irecv" not in source and "isend" not in source:
        return
    if "synchronize(" in source or "oalesc" in source:
        return  # it waits for all of them in another way
    script = read_script(facts)
    for name, call in script.calls:
        is_transfer = name in (f"{_TORCH}isend", f"{_TORCH}irecv")
        flag = call_argument(call, "async_op")
        is_async = isinstance(flag, ast.Constant) and flag.value is True
        if not is_transfer and not (is_async and name in TORCH_COLLECTIVES):
            continue
        if not isinstance(script.parents.get(call), ast.Expr) or name.endswith("barrier"):
            continue
        short = name.rpartition(".")[2]
        yield Claim(
            summary=f"nothing waits for this {short}: what the tensor holds after it is undefined",
            evidence=(script.evidence_for(call),),
            fix=f"work = {ast.unparse(call)}; work.wait()   # before the tensor is used",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _kind(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


_HEAD = "import torch\nimport torch.distributed as dist\nrank = dist.get_rank()\n"
_MASKED = (
    "import torch\nimport torch.distributed as dist\ndef gather(t):\n"
    "    out = [torch.zeros_like(t) for _ in range(4)]\n    dist.all_gather(out, t)\n"
    "def step(x, scores):\n    keep = scores > 0.5\n    gather(x[keep].detach())\n"
)
_BRANCHES = (
    _HEAD
    + "if rank == 0:\n    t = torch.zeros(16, 4).cuda()\nelse:\n    t = torch.zeros(8, 4).cuda()\n"
)
_OBJECTS = _HEAD + "o = ['a', 'b'] if rank == 0 else [None]\ndist.broadcast_object_list(o, src=0)\n"
_GATHER = (
    _HEAD + "out = [torch.zeros(3) for _ in range(dist.get_world_size())]\n"
    "dist.gather(t, gather_list=out, dst=0)\n"
)
_RECEIVED = _HEAD + "if rank == 1:\n    dist.irecv(t, src=0)\n    print(t)\n"
_EVERY = (
    "every rank passes {0} to {1}, which only the rank of {2} may do: the others end with a ValueError, and "
    "that one waits for them"
)
_CUT = (
    "import torch\nimport torch.distributed as dist\n"
    "def gather_all(tokens):\n    out = [torch.ones_like(tokens) for _ in range(dist.get_world_size())]\n"
    "    dist.all_gather(out, tokens)\n    return torch.cat(out)\n"
    "def forward(ids, mask):\n    lengths = mask.sum(1)\n    longest = lengths.max().item()\n"
    "    return gather_all(ids[:, :longest])\n"
)

RULES = {
    "code072_other_sizes": script_rule(
        page="""The ranks pass tensors or lists of different sizes to one collective.

## Why it matters
PyTorch's collectives need the same number of elements on all ranks, and do not compare it. With Gloo the
ranks fail or abort; with NCCL they hang, or read memory that nobody wrote.

## What to do
Pad to one size: gather the sizes first, take the largest, and cut the padding off afterwards. Lists of
objects need one length: `[None] * n` on the ranks that receive.
""",
        check=_other_sizes,
        fires_on={
            "an all_gather of 16 rows on rank 0 and 8 on the others": (
                _BRANCHES + "dist.all_gather(out, t)\n",
                "t has another size on some ranks, (16, 4) and (8, 4): all_gather needs one size on all",
            ),
            "an all_gather of the rows that a condition on the rank's own scores lets through": (
                _MASKED,
                "t has as many rows as x[keep] lets through, another number on each rank: all_gather needs "
                "one size on all",
            ),
            "tokens that are cut at the longest of the rank's own batch, gathered by a function": (
                _CUT,
                "tokens is cut at longest, another number on each rank: all_gather needs one size on all",
            ),
            "a broadcast of two objects into a list for one": (
                _OBJECTS,
                "o has another size on some ranks, 2 and 1: broadcast_object_list needs one size on all",
            ),
        },
        silent_on={
            "the rows are padded to one number": _MASKED.replace(
                "    out =", "    t = pad_rows(t)\n    out ="
            ),
            "the ranks agree on the largest length first": _CUT.replace(
                "    longest = lengths.max().item()\n",
                "    dist.all_reduce(lengths, op=dist.ReduceOp.MAX)\n    longest = lengths.max().item()\n",
            ),
            "tokens that are cut at a length of the configuration": _CUT.replace(
                "lengths.max().item()", "config.max_length"
            ),
            "rows that are chosen by their numbers": _MASKED.replace(
                "scores > 0.5", "order(scores)"
            ),
            "rows that are set to zero instead of left out": _MASKED.replace("x[keep]", "x * keep"),
            "tensors of one size, with different contents": _BRANCHES.replace("16", "8")
            + "dist.all_gather(out, t)\n",
            "a size that only a run could tell": _BRANCHES.replace("16", "n")
            + "dist.all_gather(out, t)\n",
            "a list with a place for each object": _OBJECTS.replace("[None]", "[None] * 2"),
            "a condition that is alike on all ranks": _BRANCHES.replace("rank == 0", "args.large")
            + "dist.all_gather(out, t)\n",
            "tensors of different sizes that no collective gets": _BRANCHES + "print(t)\n",
        },
    ),
    "code073_list_on_all_ranks": script_rule(
        page="""Every rank passes the list that only one rank may pass to `gather` or `scatter`.

## Why it matters
`gather_list` belongs to the destination, and `scatter_list` to the source. On all other ranks PyTorch raises
a ValueError ("must not be specified on non-destination ranks"); the one rank waits for them until its
timeout, and its log blames the network.

## What to do
`gather_list=out if rank == dst else None`.
""",
        check=_list_on_all_ranks,
        fires_on={
            "a gather with a list on all ranks": (
                _GATHER,
                _EVERY.format("gather_list", "gather", "dst"),
            ),
            "a scatter with a list on all ranks": (
                _GATHER.replace("gather(t, gather_list=out, dst=0)", "scatter(t, out, src=0)"),
                _EVERY.format("scatter_list", "scatter", "src"),
            ),
        },
        silent_on={
            "the list is passed by the destination": _GATHER.replace(
                "=out,", "=out if rank == 0 else None,"
            ),
            "the list is made by the destination": _GATHER.replace(
                "dist.get_world_size())]", "dist.get_world_size())] if rank == 0 else None"
            ),
            "each side has its own call": _GATHER.replace(
                "dist.gather(", "if rank == 0:\n    dist.gather("
            ),
            "an all_gather, whose list all ranks pass": _GATHER.replace(
                "gather(t, gather_list=out, dst=0)", "all_gather(out, t)"
            ),
        },
    ),
    "code074_not_waited_for": script_rule(
        page="""A transfer is started, and nothing waits for it.

## Why it matters
`isend`, `irecv` and collectives with `async_op=True` return at once. Until `wait()` of what they return, the
tensor may hold the old value, the new one, or half of each: the loss is wrong now and then.

## What to do
Keep what the call returns, and call its `wait()` before the tensor is read or changed.
""",
        check=_not_waited_for,
        fires_on={
            "an irecv whose tensor is printed": (
                _RECEIVED,
                "nothing waits for this irecv: what the tensor holds after it is undefined",
            ),
            "an all_reduce with async_op": (
                _HEAD + "dist.all_reduce(t, async_op=True)\nprint(t)\n",
                "nothing waits for this all_reduce: what the tensor holds after it is undefined",
            ),
        },
        silent_on={
            "the transfer is waited for": _RECEIVED.replace("src=0)", "src=0).wait()"),
            "the transfer is kept in a list": _RECEIVED.replace(
                "dist.irecv(t, src=0)", "works.append(dist.irecv(t, src=0))"
            ),
            "the device is waited for": _RECEIVED.replace(
                "    print", "    torch.cuda.synchronize()\n    print"
            ),
            "an all_reduce that waits by itself": _HEAD + "dist.all_reduce(t, async_op=False)\n",
        },
    ),
}
