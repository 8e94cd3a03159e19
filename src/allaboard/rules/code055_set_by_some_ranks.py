"""A variable is set by some ranks alone, and every rank uses it.

## Why it matters
Under `if rank == 0` only rank 0 sets the variable. The other ranks come to its use without it, and stop
with a NameError (in a function, an UnboundLocalError). Rank 0 then waits for them in its next collective.
If the variable has a default, they go on with that: an epoch to begin with that rank 0 alone looks up lets
the ranks train different numbers of epochs.

## What to do
Use the variable where it is set, or set it on every rank: `result = None` before the `if`, and
`dist.broadcast_object_list` if all of them need the value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import call_graph_of
from allaboard.formats.python.collective_calls import FRAMEWORK_WORDS
from allaboard.formats.python.rank_conditions import differs_between_ranks
from allaboard.formats.python.script_ast import Script, call_argument, leaves_block, read_script

_MAY_NOT_RUN = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.ExceptHandler, ast.Lambda, ast.match_case),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.comprehension, ast.While, ast.For),
)
"""What may leave out a part of it."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    # The cells of a notebook run in an order of their own.
    if facts.is_notebook or not any(word in facts.source for word in FRAMEWORK_WORDS):
        return
    script = read_script(facts)
    reach = call_graph_of(script)
    for condition in [n for n in script.parents if isinstance(n, ast.If)]:
        if (
            condition.orelse
            or leaves_block(condition.body)
            or not script.depends_on_rank(condition.test)
            or not differs_between_ranks(script, reach, condition.test)
        ):
            continue
        yield from _start_of_one(script, condition)
        setting_and_use = _use_by_all(script, condition)
        if setting_and_use is not None:
            yield _claim(script, condition, *setting_and_use)


def _start_of_one(script: Script, condition: ast.If) -> Iterator[Claim]:
    """Report an epoch to begin with that some ranks alone look up, while the others keep its default."""
    inner = set(ast.walk(condition))
    set_here = {
        n.id: n
        for n in inner
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and "epoch" in n.id
    }
    if not set_here:  # most conditions: a script may have thousands
        return
    for _, call in script.calls:
        start = _first_epoch(call)
        if start is None or start.id not in set_here or call in inner:
            continue
        # The others may not come there.
        if call.lineno < condition.lineno or script.rank_condition(call) is not None:
            continue
        if not _only_defaults_elsewhere(script, condition, start, inner):
            continue
        yield Claim(
            summary=f"only the ranks with {ast.unparse(condition.test)[:60]} look up {start.id}: the others "
            "begin with its default, and train other epochs",
            evidence=(script.evidence_for(set_here[start.id]), script.evidence_for(call)),
            fix=f"{start.id} = BROADCAST({start.id}) from rank 0   # hvd.broadcast(…, 0), "
            "dist.broadcast_object_list",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(set_here[start.id]),
        )
        return


def _first_epoch(call: ast.Call) -> ast.Name | None:
    """Return the variable that holds the epoch with which a loop or ``fit`` begins; None for none."""
    start = call_argument(call, "initial_epoch")
    if isinstance(call.func, ast.Name) and call.func.id == "range" and len(call.args) > 1:
        start = call.args[0]
    return start if isinstance(start, ast.Name) else None


def _only_defaults_elsewhere(
    script: Script, condition: ast.If, start: ast.Name, inner: set[ast.AST]
) -> bool:
    """Return True if outside of the condition the variable is set before it alone, and never passed on, as
    to a broadcast."""
    uses = [
        n for n in script.parents if isinstance(n, ast.Name) and n.id == start.id and n not in inner
    ]
    is_passed_on = any(
        (isinstance(n.ctx, ast.Store) and n.lineno > condition.lineno)
        or (isinstance(script.parents.get(n), (ast.Call, ast.keyword, ast.List)) and n is not start)
        for n in uses
    )
    return any(isinstance(n.ctx, ast.Store) for n in uses) and not is_passed_on


def _use_by_all(script: Script, condition: ast.If) -> tuple[ast.Name, ast.Name] | None:
    """Return where a variable is set under the condition alone, and the first place where every rank uses
    it; None if there is none."""
    set_here = {
        n.id: n
        for statement in condition.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    function = script.enclosing_function(condition)
    for name in list(set_here):
        bindings = script.ranks.bound_values(set_here[name])
        if len(bindings) > 1 or _is_bound_elsewhere(script, name, condition, function):
            del set_here[name]
    if not set_here:
        return None
    for statement in script.statements_after(condition):
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Name)
                and node.id in set_here
                and isinstance(node.ctx, ast.Load)
                and _always_runs(script, node, statement)
                and script.rank_condition(node) is None
            ):
                return set_here[node.id], node
    return None


def _is_bound_elsewhere(
    script: Script, name: str, condition: ast.If, function: ast.AST | None
) -> bool:
    """Return True if anything else than the body of the condition may bind the name."""
    if name in script.names or script.functions_named(name) or name in script.class_bodies:
        return True
    condition_nodes = set(ast.walk(condition))
    for node in ast.walk(function if function is not None else script.tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if getattr(node, "name", None) == name or getattr(node, "rest", None) == name:
            return True
        if (
            isinstance(node, ast.Name)
            and node.id == name
            and not isinstance(node.ctx, ast.Load)
            and node not in condition_nodes
        ):
            return True
    return function is not None and any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in script.tree.body
    )


def _always_runs(script: Script, node: ast.AST, statement: ast.stmt) -> bool:
    """Return True if the statement cannot run without coming to the node."""
    between = [node]
    for ancestor in script.ancestors(node):
        between.append(ancestor)
        if ancestor is statement:
            break
    return not any(isinstance(a, _MAY_NOT_RUN) for a in between) and not any(
        isinstance(a, ast.Try) for a in script.ancestors(statement)
    )


def _claim(script: Script, condition: ast.If, setting: ast.Name, use: ast.Name) -> Claim:
    error = "NameError" if script.enclosing_function(use) is None else "UnboundLocalError"
    reached = script.reached_where(setting, condition)
    return Claim(
        summary=f"{use.id} is set only where {reached}, and every rank uses it: the others stop there with "
        f"a{'n' if error[0] == 'U' else ''} {error}",
        evidence=(
            script.evidence_for(use),
            script.evidence_for(setting),
            script.evidence_for(condition),
        ),
        fix=f"{use.id} = None   # before the if of line {condition.lineno}; or use it in there",
        certainty=Certainty.LIKELY,
        where=script.place_of(use),
    )


_HEAD = "import torch.distributed as dist\nrank = dist.get_rank()\n"
_RESUMED = (
    _HEAD + "first_epoch = 0\nif rank == 0:\n    first_epoch = latest()\n"
    "for epoch in range(first_epoch, 9):\n    train(epoch)\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "rank 0 evaluates, and all ranks write the results": (
            ScriptFacts(
                source=_HEAD + "if rank == 0:\n    results = evaluate()\n"
                "with open('r.json', 'w') as f:\n    json.dump(results, f)\n"
            ),
            "results is set only where rank == 0, and every rank uses it: the others stop there with a "
            "NameError",
        ),
        "in a function, rank 0 sets a variable that all ranks use": (
            ScriptFacts(
                source=_HEAD + "def main(rank):\n    if rank == 0:\n        acc = score()\n"
                "    scheduler.step(acc)\n"
            ),
            "acc is set only where rank == 0, and every rank uses it: the others stop there with an "
            "UnboundLocalError",
        ),
        "rank 0 alone looks for the epoch to resume from": (
            ScriptFacts(source=_RESUMED),
            "only the ranks with rank == 0 look up first_epoch: the others begin with its default, and train "
            "other epochs",
        ),
    },
    silent_on={
        "rank 0 tells the others the epoch to resume from": ScriptFacts(
            source=_RESUMED.replace("for e", "first_epoch = share(first_epoch)\nfor e")
        ),
        "rank 0 alone goes through the epochs": ScriptFacts(
            source=_RESUMED.replace("for e", "if rank == 0:\n  for e")
        ),
        "all ranks look for the epoch to resume from": ScriptFacts(
            source=_RESUMED.replace("if rank == 0:", "if resume:")
        ),
        "the variable has a value before the branch": ScriptFacts(
            source=_HEAD + "r = None\nif rank == 0:\n    r = evaluate()\nprint(r)\n"
        ),
        "only rank 0 uses the variable": ScriptFacts(
            source=_HEAD
            + "if rank == 0:\n    w = Writer()\nfor x in data:\n    if rank == 0:\n        w.add(x)\n"
        ),
        "the variable is used under another condition": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    w = Writer()\nif writes:\n    w.add(1)\n"
        ),
        "the other ranks have returned before the variable is used": ScriptFacts(
            source=_HEAD
            + "def main():\n    if rank == 0:\n        w = Writer()\n    if rank != 0:\n"
            "        return\n    w.add(1)\n"
        ),
        "the other branch sets the variable as well": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    w = Writer()\nelse:\n    w = None\nprint(w)\n"
        ),
        "an import sets the variable on all ranks": ScriptFacts(
            source=_HEAD + "from log import w\nif rank == 0:\n    w = Writer()\nprint(w)\n"
        ),
        "the script catches the NameError": ScriptFacts(
            source=_HEAD
            + "if rank == 0:\n    w = Writer()\ntry:\n    w.close()\nexcept NameError:\n    pass\n"
        ),
        "the variable is used behind `rank == 0 and`": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    w = Writer()\nrank == 0 and w.add(1)\n"
        ),
        "a condition that asks only whether the job is distributed (`rank != -1`)": ScriptFacts(
            source=_HEAD + "if rank != -1:\n    d = rank\nprint(d)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
