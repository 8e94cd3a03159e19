"""Arguments that PyTorch refuses once several ranks run the script: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.evaluation import resolve
from allaboard.formats.python.flow.branches import exclude_each_other, may_reach
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_LOADER = "torch.utils.data.DataLoader"
_SAMPLER = "torch.utils.data.DistributedSampler"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_CHECKPOINTS = {
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.checkpoint.checkpoint_sequential",
}
_NOT_REENTRANT = re.compile(
    r"static_graph|partial\([^)]{0,80}use_reentrant\s*=\s*False|_use_reentrant\s*=\s*False"
)
"""Matches a graph that DDP takes as it is in the first step, and a checkpoint of another default."""
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


def _shuffles_beside_sampler(facts: ScriptFacts) -> Iterator[Claim]:
    if "Sampler" not in facts.source or "DataLoader" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(_LOADER):
        shuffle = call_argument(call, "shuffle", 2)
        sampler = call_argument(call, "sampler", 3)
        if shuffle is None or sampler is None or not _is_true(resolve(script, shuffle)):
            continue
        made_sampler = _made_sampler(script, sampler)
        if made_sampler is None or not may_reach(script, made_sampler, sampler, call):
            continue
        text = ast.unparse(sampler)
        yield Claim(
            summary=f'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
            f'shuffle"): {text[:60]} shuffles by itself',
            evidence=(script.evidence_for(call), script.evidence_for(made_sampler)),
            fix=f"shuffle=({text} is None)" if isinstance(sampler, ast.Name) else "shuffle=False",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _made_sampler(script: Script, sampler: ast.expr) -> ast.Call | None:
    """Return where the distributed sampler is made that a loader gets; None if it gets none."""
    values: list[ast.expr | None] = [sampler]
    if isinstance(sampler, (ast.Name, ast.Attribute)):
        values += script.ranks.bound_values(sampler)
    calls = [n for v in values if v is not None for n in _branches(v)]
    return next((c for c in calls if full_name(c.func, script.names) == _SAMPLER), None)


def _branches(value: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls that a value may come from: itself, or a branch of ``a if b else c``."""
    if isinstance(value, ast.IfExp):
        yield from _branches(value.body)
        yield from _branches(value.orelse)
    elif isinstance(value, ast.Call):
        yield value


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _reentrant_checkpoint(facts: ScriptFacts) -> Iterator[Claim]:
    if "find_unused_parameters" not in facts.source or "checkpoint" not in facts.source:
        return
    if _NOT_REENTRANT.search(facts.source):
        return
    script = read_script(facts)
    for name, call in script.calls:
        if name not in _CHECKPOINTS:
            continue
        reentrant = call_argument(call, "use_reentrant")
        if any(k.arg is None for k in call.keywords) or (
            reentrant is not None and not _is_true(resolve(script, reentrant))
        ):
            continue
        for wrap in script.calls_of(_DDP):
            finds_unused = call_argument(wrap, "find_unused_parameters")
            if finds_unused is None or not _is_true(resolve(script, finds_unused)):
                continue
            if (
                exclude_each_other(script, call, wrap)
                or _is_switched_off(script, call)
                or not _is_part_of(script, call, wrap)
            ):
                continue
            yield Claim(
                summary="DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient "
                'twice: the first backward ends with "Expected to mark a variable ready only once"',
                evidence=(script.evidence_for(call), script.evidence_for(wrap)),
                fix=f"{ast.unparse(call.func)}(…, use_reentrant=False)",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _is_switched_off(script: Script, call: ast.Call) -> bool:
    """Return True if the call is under an option that the script sets to False."""
    tests = [a.test for a in script.ancestors(call) if isinstance(a, (ast.If, ast.IfExp))]
    options = {
        n.attr if isinstance(n, ast.Attribute) else n.id
        for t in tests
        for n in ast.walk(t)
        if isinstance(n, (ast.Attribute, ast.Name))
    }
    return any(k.arg in options and _is_false(k.value) for _, c in script.calls for k in c.keywords)


def _is_part_of(script: Script, call: ast.Call, wrap: ast.Call) -> bool:
    """Return False if the model in the wrap is of a class that does not use the class of the call."""
    model = resolve(script, wrap.args[0]) if wrap.args else None
    classes = {n.name: n for n in script.parents if isinstance(n, ast.ClassDef)}
    owner = next((a for a in script.ancestors(call) if isinstance(a, ast.ClassDef)), None)
    name = ast.unparse(model.func) if isinstance(model, ast.Call) else ""
    if owner is None or name not in classes:
        return True
    pending, known = [name], {name}
    while pending:
        for node in ast.walk(classes[pending.pop()]):
            if isinstance(node, ast.Name) and node.id in classes and node.id not in known:
                known.add(node.id)
                pending.append(node.id)
    in_call = {n.id for a in ast.walk(model) if isinstance((n := a), ast.Name)} if model else set()
    return bool({owner.name} & (known | in_call))


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


_LOADED = (
    "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
    "if distributed:\n    sampler = DistributedSampler(data)\nelse:\n    sampler = None\n"
    "loader = DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)\n"
)
_CHECKPOINTED = (
    "from torch.nn.parallel import DistributedDataParallel\n"
    "from torch.utils.checkpoint import checkpoint\n"
    "class Net(Module):\n    def forward(self, x):\n        return checkpoint(self.block, x)\n"
    "model = DistributedDataParallel(Net(), find_unused_parameters=True)\n"
)
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
    "code088_shuffles_beside_sampler": script_rule(
        page="""A DataLoader that gets a distributed sampler is to shuffle as well.

## Why it matters
A sampler decides the order, so PyTorch refuses `shuffle=True` beside one: "sampler option is mutually
exclusive with shuffle". In a script that makes the sampler for several GPUs only, that shows on the first
machine with two.

## What to do
`shuffle=(sampler is None)`. A DistributedSampler shuffles by itself; call its `set_epoch` in each epoch.
""",
        check=_shuffles_beside_sampler,
        fires_on={
            "the sampler is made for a distributed run alone, and `shuffle=True` always": (
                _LOADED,
                'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
                'shuffle"): sampler shuffles by itself',
            ),
            "the sampler is made in the call": (
                "from torch.utils.data import DataLoader, DistributedSampler\n"
                "loader = DataLoader(data, 8, True, DistributedSampler(data))\n",
                'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
                'shuffle"): DistributedSampler(data) shuffles by itself',
            ),
        },
        silent_on={
            "it shuffles where there is no sampler": _LOADED.replace(
                "shuffle=True", "shuffle=(sampler is None)"
            ),
            "the DistributedSampler shuffles, the loader does not": _LOADED.replace(
                "shuffle=True", "shuffle=False"
            ).replace("Sampler(data)", "Sampler(data, shuffle=True)"),
            "a loader without a sampler shuffles": _LOADED.replace(", sampler=sampler", ""),
            "a loader for each branch": _LOADED.replace(
                "loader =", "if not distributed:\n    loader ="
            ),
            "the branch with a sampler returns": _LOADED.partition("if ")[0]
            + "def make(data):\n    if distributed:\n        sampler = DistributedSampler(data)\n"
            "        return DataLoader(data, sampler=sampler)\n    sampler = None\n"
            "    return DataLoader(data, shuffle=True, sampler=sampler)\n",
            "the variable has another value by then": _LOADED.replace(
                "loader =", "train = DataLoader(data, sampler=sampler)\nsampler = None\nloader ="
            ),
            "a loader where there is no sampler": _LOADED.replace(
                "loader =", "if sampler is None:\n    loader ="
            ),
        },
    ),
    "code089_reentrant_checkpoint": script_rule(
        page="""DDP looks for unused parameters in a model with reentrant checkpoints.

## Why it matters
A reentrant checkpoint runs a backward of its own inside the backward. DDP has then already marked the
parameters of that part as unused, and marks them once more: "Expected to mark a variable ready only once".

## What to do
`checkpoint(…, use_reentrant=False)`, which PyTorch recommends; or DDP without
`find_unused_parameters=True`.
""",
        check=_reentrant_checkpoint,
        fires_on={
            "`checkpoint` by its default, in a model that DDP searches": (
                _CHECKPOINTED,
                "DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient twice: "
                'the first backward ends with "Expected to mark a variable ready only once"',
            ),
            "a checkpoint with `use_reentrant=True`": (
                _CHECKPOINTED.replace("block, x", "block, x, use_reentrant=True"),
                "DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient twice: "
                'the first backward ends with "Expected to mark a variable ready only once"',
            ),
        },
        silent_on={
            "a checkpoint with `use_reentrant=False`": _CHECKPOINTED.replace(
                "block, x", "block, x, use_reentrant=False"
            ),
            "DDP does not look for unused parameters": _CHECKPOINTED.replace(
                ", find_unused_parameters=True", ""
            ),
            "the graph is static": _CHECKPOINTED.replace("=True)", "=True, static_graph=True)"),
            "an own default": _CHECKPOINTED.replace(
                "class", "checkpoint = partial(checkpoint, use_reentrant=False)\nclass"
            ),
            "another model has the checkpoint": _CHECKPOINTED.replace(
                "model =", "class Student(Module):\n    pass\nmodel ="
            ).replace("Parallel(Net()", "Parallel(Student()"),
            "DDP searches where there is no checkpoint": _CHECKPOINTED.replace(
                "        return", "        if a.saves_memory:\n            return"
            ).replace("model =", "if a.saves_memory:\n    pass\nelse:\n    model ="),
            "the option is off": _CHECKPOINTED.replace(
                "        return", "        if self.saves_memory:\n            return"
            ).replace("Net()", "Net(saves_memory=False)"),
            "a checkpoint that is saved": _CHECKPOINTED.replace("torch.utils.checkpoint", "mine"),
        },
    ),
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
