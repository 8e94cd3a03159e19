"""The two branches of a condition on the rank meet the other ranks in different orders.

## Why it matters
Collectives match by their order, not by their names: if rank 0 broadcasts and then waits in a barrier, while
the others wait in the barrier first, each waits for a call that the other side has not reached. The same
holds for messages: `recv` blocks until the peer has sent, and if both sides receive first, nobody sends.

## What to do
Bring the calls of both branches into one order, or move the calls that both branches make behind the
condition. Of two ranks that exchange messages, one sends first; `batch_isend_irecv` does both at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.collective_calls import TORCH_COLLECTIVES, is_limited_to_group
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, leaves_block, read_script

_RECEIVE = "torch.distributed.recv"
_SENDS = tuple(f"torch.distributed.{n}" for n in ("send", "isend", "batch_isend_irecv", "irecv"))


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "torch.distributed" not in facts.source and "torch import distributed" not in facts.source:
        return
    script = read_script(facts)
    yield from _ring(script)
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.If) or not node.orelse or not script.depends_on_rank(node.test):
            continue
        if leaves_block(node.body) or isinstance(node.orelse[0], ast.If):
            continue
        calls = _calls(script, node.body), _calls(script, node.orelse)
        if all(calls) and not any(c is None for c in calls):
            yield from _compare(script, node, calls[0] or [], calls[1] or [])


def _ring(script: Script) -> Iterator[Claim]:
    """Report a ring in which every rank receives from its neighbour before it sends."""
    receives = [(n, c) for n, c in script.calls if n in (_RECEIVE, *_SENDS)]
    for number, (name, call) in enumerate(receives):
        source = call_argument(call, "src", 1)
        if name != _RECEIVE or source is None or script.rank_condition(call) is not None:
            continue
        function = script.enclosing_function(call)
        peer = resolve(script, source)
        is_wrapped = isinstance(peer, ast.BinOp) and isinstance(peer.op, ast.Mod)
        sends = [c for n, c in receives if n in _SENDS[:3]]
        after = [c for _, c in receives[number + 1 :] if c in sends]
        if not is_wrapped or len(sends) != len(after) or not after:
            continue
        if script.enclosing_function(after[0]) is function and not any(
            isinstance(a, ast.If) for a in script.ancestors(call) if a is not function
        ):
            yield Claim(
                summary=f"every rank receives from {ast.unparse(source)} before it sends: nobody sends until "
                "it has received",
                evidence=(script.evidence_for(call), script.evidence_for(after[0])),
                fix="dist.batch_isend_irecv([P2POp(isend, …), P2POp(irecv, …)])   # both at once",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _calls(script: Script, block: list[ast.stmt]) -> list[tuple[str, ast.Call]] | None:
    """Return the calls of a block that meet other ranks, in order; None if only a run could tell them."""
    calls: list[tuple[str, ast.Call]] = []
    for statement in block:
        inner = [
            (name, n)
            for n in ast.walk(statement)
            if isinstance(n, ast.Call)
            and (name := script.call_name(n.func)).startswith("torch.distributed.")
        ]
        if inner and not isinstance(statement, (ast.Expr, ast.Assign)):
            return None
        calls += inner
    meeting_calls = TORCH_COLLECTIVES | {_RECEIVE, *_SENDS}
    return [(name, call) for name, call in calls if name in meeting_calls]


def _compare(
    script: Script,
    condition: ast.If,
    body: list[tuple[str, ast.Call]],
    orelse: list[tuple[str, ast.Call]],
) -> Iterator[Claim]:
    if body[0][0] == orelse[0][0] == _RECEIVE:
        branches = {id(c) for _, c in (*body, *orelse)}
        if any(id(c) not in branches for n, c in script.calls if n in _SENDS):
            return  # what is sent elsewhere may be what is received here
        problem = "both branches receive first: nobody sends until it has received"
        fix = f"{script.source_line(orelse[-1][1])}   # first, above line {orelse[0][1].lineno}"
        yield _claim(script, condition, body[0][1], orelse[0][1], problem, fix)
        return
    if body[0][0] == orelse[0][0] == _SENDS[0]:
        if _exchanges(body) and _exchanges(orelse):
            problem = "both branches send first: nobody receives until it has sent"
            fix = f"{script.source_line(orelse[-1][1])}   # first, above line {orelse[0][1].lineno}"
            yield _claim(script, condition, body[0][1], orelse[0][1], problem, fix)
        return
    names = [[n for n, c in side if n in TORCH_COLLECTIVES] for side in (body, orelse)]
    limited = any(is_limited_to_group(n, c) for n, c in (*body, *orelse))
    if limited or names[0] == names[1] or sorted(names[0]) != sorted(names[1]):
        return
    pairs = [
        (a[1], b[1])
        for a, b in zip(_collectives(body), _collectives(orelse), strict=True)
        if a[0] != b[0]
    ]
    call_a, call_b = pairs[0]
    short = [script.call_name(c.func).rpartition(".")[2] for c in (call_a, call_b)]
    problem = (
        f"{short[0]} and {short[1]} come in different orders in the two branches: "
        "each waits for the other"
    )
    yield _claim(
        script,
        condition,
        call_a,
        call_b,
        problem,
        f"{script.source_line(call_a)}   # above line {call_b.lineno}",
    )


def _exchanges(side: list[tuple[str, ast.Call]]) -> bool:
    """Return True if a branch sends to one rank and receives from the same."""
    peers = {
        name: call_argument(call, "dst", 1) or call_argument(call, "src", 1) for name, call in side
    }
    sent, received = peers.get(_SENDS[0]), peers.get(_RECEIVE)
    if sent is None or received is None or len(side) != 2:
        return False
    return ast.unparse(sent) == ast.unparse(received)


def _collectives(side: list[tuple[str, ast.Call]]) -> list[tuple[str, ast.Call]]:
    return [(n, c) for n, c in side if n in TORCH_COLLECTIVES]


def _claim(
    script: Script, condition: ast.If, call_a: ast.Call, call_b: ast.Call, problem: str, fix: str
) -> Claim:
    return Claim(
        summary=f"where {ast.unparse(condition.test)[:60]} and where not, {problem}",
        evidence=(script.evidence_for(call_a), script.evidence_for(call_b)),
        fix=fix,
        certainty=Certainty.LIKELY,
        where=script.place_of(call_b),
    )


_HEAD = "import torch.distributed as dist\nif dist.get_rank() == 0:\n"
_CROSSED = (
    _HEAD + "    dist.broadcast(w, 0)\n    dist.barrier()\nelse:\n    dist.barrier()\n"
    "    dist.broadcast(w, 0)\n"
)
_RECEIVES = (
    _HEAD + "    dist.recv(x, src=1)\n    dist.send(y, dst=1)\nelse:\n    dist.recv(x, src=0)\n"
    "    dist.send(y, dst=0)\n"
)
_SENT = (
    _HEAD + "    dist.send(y, dst=1)\n    dist.recv(x, src=1)\nelse:\n    dist.send(y, dst=0)\n"
    "    dist.recv(x, src=0)\n"
)
_RING = (
    "import torch.distributed as dist\nrank, world = dist.get_rank(), dist.get_world_size()\n"
    "dist.recv(x, src=(rank - 1) % world)\ndist.send(y, dst=(rank + 1) % world)\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "every rank of a ring receives before it sends": (
            ScriptFacts(source=_RING),
            "every rank receives from (rank - 1) % world before it sends: nobody sends until it has received",
        ),
        "both branches send before they receive": (
            ScriptFacts(source=_SENT),
            "where dist.get_rank() == 0 and where not, both branches send first: nobody receives until it "
            "has sent",
        ),
        "one branch calls broadcast and then barrier, the other the reverse": (
            ScriptFacts(source=_CROSSED),
            "where dist.get_rank() == 0 and where not, broadcast and barrier come in different orders in "
            "the two branches: each waits for the other",
        ),
        "both branches receive before they send": (
            ScriptFacts(source=_RECEIVES),
            "where dist.get_rank() == 0 and where not, both branches receive first: nobody sends until it "
            "has received",
        ),
    },
    silent_on={
        "every rank of a ring starts to send before it receives": ScriptFacts(
            source=_RING.replace(
                "dist.recv", "work = dist.isend(y, dst=(rank + 1) % world)\ndist.recv"
            )
        ),
        "a chain, whose first rank does not receive": ScriptFacts(
            source=_RING.replace("dist.recv", "if rank > 0:\n    dist.recv")
        ),
        "both branches send to the next rank and receive from the one before": ScriptFacts(
            source=_SENT.replace("src=0", "src=2").replace("src=1", "src=3")
        ),
        "both branches call broadcast and then barrier": ScriptFacts(
            source=_HEAD + "    w = load()\n    dist.broadcast(w, 0)\n    dist.barrier()\nelse:\n"
            "    dist.broadcast(w, 0)\n    dist.barrier()\n"
        ),
        "the barrier is in another group than the broadcast": ScriptFacts(
            source=_CROSSED.replace("barrier()", "barrier(group)")
        ),
        "one branch sends first, and the other receives first": ScriptFacts(
            source=_HEAD + "    dist.send(y, dst=1)\n    dist.recv(x, src=1)\nelse:\n"
            "    dist.recv(x, src=0)\n    dist.send(y, dst=0)\n"
        ),
        "an `isend` before the branches": ScriptFacts(
            source=_RECEIVES.replace("if dist", "work = dist.isend(y, peer)\nif dist")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
