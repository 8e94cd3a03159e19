"""Mistakes in the names of PyTorch's RPC workers, and in how they end: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_INIT_RPC = "torch.distributed.rpc.init_rpc"
_ROLE_OF_ONE = re.compile(
    r"(?i)^(?:ps|.*(?:master|server|chief|coordinator|agent|learner|driver|main|head|leader|controller)).{0,2}$"
)
"""Matches the name of a role of which there is one: the others may join in another script."""
_CALLS_BY_NAME = tuple(
    f"torch.distributed.rpc.{name}"
    for name in ("remote", "rpc_sync", "rpc_async", "get_worker_info")
)
_ANY = ".+"
"""Pattern of what is put into a name."""
_SHUTDOWN_RPC = "torch.distributed.rpc.shutdown"


def _one_rpc_name(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_rpc" not in facts.source:
        return
    script = read_script(facts)
    calls = script.calls_of(_INIT_RPC)
    for call in calls if len(calls) == 1 else ():  # of several, each may be of other ranks
        function = script.enclosing_function(call)
        uses = script.name_uses(function) if function is not None else []
        if any(script.rank_condition(use) is not None for use in uses):
            continue
        name, rank = call_argument(call, "name", 0), call_argument(call, "rank", 2)
        text = resolve(script, name) if name is not None else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str) or rank is None:
            continue
        is_of_one = isinstance(resolve(script, rank), ast.Constant) or _ROLE_OF_ONE.search(
            text.value
        )
        if is_of_one or script.rank_condition(call) is not None:
            continue
        yield Claim(
            summary=f"every rank joins RPC under the name {text.value!r}: names must differ, and init_rpc "
            "is refused",
            evidence=(script.evidence_for(call),),
            fix=f'rpc.init_rpc(f"{text.value}{{{ast.unparse(rank)}}}", …)',
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _unknown_rpc_name(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_rpc" not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    names = [call_argument(c, "name", 0) for c in script.calls_of(_INIT_RPC)]
    patterns = [_name_pattern(script, n) for n in names]
    if not patterns or "" in patterns:
        return
    if len(names) == 1 and not any(_ANY in p for p in patterns):
        return  # a script for one role: the others have scripts of their own
    for call in script.calls_of(*_CALLS_BY_NAME):
        callee = call_argument(call, "to", 0)
        pattern = _name_pattern(script, callee)
        if not pattern or any(_may_be_one(pattern, p) for p in patterns):
            continue
        known = ", ".join(sorted({ast.unparse(resolve(script, n)) for n in names if n is not None}))
        yield Claim(
            summary=f"no rank joins RPC under the name {ast.unparse(callee or call)[:60]}: this script has "
            f"{known[:100]}",
            evidence=(script.evidence_for(call), *(script.evidence_for(n) for n in names[:1] if n)),
            fix="the name that init_rpc gets on the rank that is called",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _name_pattern(script: Script, node: ast.expr | None) -> str:
    """Return a pattern of the names that an expression may be; "" if only a run could tell."""
    value = resolve(script, node) if node is not None else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return re.escape(value.value)
    if not isinstance(value, ast.JoinedStr):
        return ""
    parts = [re.escape(str(v.value)) if isinstance(v, ast.Constant) else _ANY for v in value.values]
    return "".join(parts) if any(isinstance(v, ast.Constant) for v in value.values) else ""


def _may_be_one(first_pattern: str, second_pattern: str) -> bool:
    """Return True if a name may match both patterns."""
    samples = [p.replace(_ANY, "1").replace("\\", "") for p in (first_pattern, second_pattern)]
    return bool(re.fullmatch(second_pattern, samples[0]) or re.fullmatch(first_pattern, samples[1]))


def _leaves_rpc(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_rpc" not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    ends = script.calls_of(_SHUTDOWN_RPC)
    for call in script.calls_of(_INIT_RPC):
        function, condition = script.enclosing_function(call), script.rank_condition(call)
        if function is None or condition is None or script.is_after(call, condition):
            continue
        shutdowns = [e for e in ends if script.enclosing_function(e) is function]
        if not shutdowns or any(script.rank_condition(e) is not condition for e in shutdowns):
            continue  # nobody waits, or all do
        side = _side(script, call, condition)
        if side is None or any(_side(script, e, condition) is side for e in shutdowns):
            continue
        if len(re.findall(r"\bshutdown\b", facts.source)) > len(shutdowns):
            continue  # at exit, or in another function
        if any(not _is_simple_call(s) for s in side[side.index(_statement(script, call)) + 1 :]):
            continue  # it may wait in what it calls
        yield Claim(
            summary=f"these ranks end right after init_rpc, while the others still call them: only where "
            f"{ast.unparse(condition.test)[:60]} does somebody wait in rpc.shutdown()",
            evidence=(script.evidence_for(call), script.evidence_for(shutdowns[0])),
            fix=f"rpc.shutdown()   # for all ranks, behind the if of line {condition.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _side(script: Script, node: ast.AST, condition: ast.If) -> list[ast.stmt] | None:
    """Return the branch of an ``if`` in which a node stands as a statement of its own."""
    statement = _statement(script, node)
    return next((b for b in (condition.body, condition.orelse) if statement in b), None)


def _statement(script: Script, node: ast.AST) -> ast.stmt:
    return next(a for a in script.ancestors(node) if isinstance(a, ast.stmt))


def _is_simple_call(statement: ast.stmt) -> bool:
    """Return True for a statement that cannot wait for others: ``pass`` or a message."""
    text = ast.unparse(statement)
    return text == "pass" or text.startswith(("print(", "log"))


_NAMED = (
    "import torch.distributed.rpc as rpc\ndef run(rank, size):\n"
    "    rpc.init_rpc('worker', rank=rank, world_size=size)\n    rpc.shutdown()\n"
)
_LEFT = (
    "import torch.distributed.rpc as rpc\ndef run(rank, size):\n    if rank == 0:\n"
    "        rpc.init_rpc('agent', rank=rank, world_size=size)\n        play()\n        rpc.shutdown()\n"
    "    else:\n        rpc.init_rpc(f'observer{rank}', rank=rank, world_size=size)\n"
)

RULES = {
    "code090_one_rpc_name": script_rule(
        page="""Every rank joins PyTorch's RPC under one name.

## Why it matters
RPC finds its workers by their names. If two have the same, `init_rpc` ends with "RPC worker name … is not
unique".

## What to do
Make the name from the rank: `rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)`.
""",
        check=_one_rpc_name,
        fires_on={
            "a fixed name, and the rank as an argument": (
                _NAMED,
                "every rank joins RPC under the name 'worker': names must differ, and init_rpc is refused",
            )
        },
        silent_on={
            "the name has the rank in it": _NAMED.replace("'worker'", "f'worker{rank}'"),
            "one rank has the name, the others have their own": _LEFT + "    rpc.shutdown()\n",
            "a function for the one rank that has this name": _NAMED
            + "def start(rank, size):\n    if rank == 0:\n        run(rank, size)\n",
            "the other ranks join elsewhere": _NAMED
            + "def play(rank, size):\n    rpc.init_rpc(f'player{rank}', rank=rank, world_size=size)\n",
            "a role of one, whose rank is an option": _NAMED.replace("'worker'", "'server'"),
            "a script for each rank": _NAMED.replace("rank=rank", "rank=1"),
        },
    ),
    "code091_leaves_rpc": script_rule(
        page="""Only some ranks wait for the others in `rpc.shutdown()`.

## Why it matters
`rpc.shutdown()` waits until all ranks have done their work. A rank that leaves without it ends while the
others call functions in it: they wait, or fail with a lost connection.

## What to do
Call `rpc.shutdown()` on all ranks, behind the condition on the rank.
""",
        check=_leaves_rpc,
        fires_on={
            "only rank 0, which calls the others, shuts down": (
                _LEFT,
                "these ranks end right after init_rpc, while the others still call them: only where "
                "rank == 0 does somebody wait in rpc.shutdown()",
            )
        },
        silent_on={
            "all ranks shut down": _LEFT.replace("        rpc.shutdown()\n", "")
            + "    rpc.shutdown()\n",
            "each branch shuts down": _LEFT + "        rpc.shutdown()\n",
            "the other ranks serve in a function": _LEFT + "        serve()\n",
            "they shut down at their exit": _LEFT + "        atexit.register(rpc.shutdown)\n",
            "they shut down in the caller": _LEFT
            + "def main():\n    run(r, n)\n    rpc.shutdown()\n",
        },
    ),
    "code097_unknown_rpc_name": script_rule(
        page="""A function is called on an RPC worker whose name no rank has.

## Why it matters
RPC finds a worker by the name that it gave to `init_rpc`. A call of any other name fails with "unknown
destination worker".

## What to do
Call it by that name, or by its rank: `rpc.remote(1, …)`.
""",
        check=_unknown_rpc_name,
        fires_on={
            "the ranks are called observers, and a worker is asked for": (
                _LEFT.replace("play()", "rpc.remote('worker1', Table)"),
                "no rank joins RPC under the name 'worker1': this script has "
                "'agent', f'observer{rank}'",
            )
        },
        silent_on={
            "one of the observers is asked for": _LEFT.replace(
                "play()", "rpc.remote(f'observer{i}', Table)"
            ),
            "a name with a hyphen": _LEFT.replace("observer{rank}", "{role}-{rank}").replace(
                "play()", "rpc.remote('data-loader-1', Table)"
            ),
            "a script for one role": "import torch.distributed.rpc as rpc\n"
            "rpc.init_rpc('trainer', rank=1, world_size=2)\nrpc.rpc_sync('server', f)\n",
            "the name comes from elsewhere": _LEFT.replace("play()", "rpc.remote(name, Table)"),
        },
    ),
}
