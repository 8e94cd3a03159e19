"""A variable that the script's own processes change is read in the parent, which does not see the change.

## Why it matters
Processes share nothing: each has a copy of the module's lists, dicts and counters. What a worker appends to
`results` is in its own copy, and ends with it. The parent reads the value that it had itself, mostly an empty
list, without any error.

## What to do
Return it through a queue (`multiprocessing.Queue`), a `multiprocessing.Manager().list()`, or collect it with
`torch.distributed.gather_object` on rank 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.flow.child_processes import Launch, launches
from allaboard.formats.python.resolution import resolver_of
from allaboard.formats.python.script_ast import Function, Script, read_script

_CHANGING_METHODS = frozenset(
    ("append", "extend", "insert", "add", "update", "setdefault", "pop", "clear", "remove")
)
_DISTRIBUTED_WORDS = ("torch", "tensorflow", "jax", "horovod")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if ("rocess" not in facts.source and "spawn" not in facts.source) or not any(
        w in facts.source for w in _DISTRIBUTED_WORDS
    ):
        return
    script = read_script(facts)
    names = _plain_globals(script)
    if not names:
        return
    reported: set[str] = set()
    for launch in launches(script):
        functions = [launch.function, *_called_by(script, launch.function)]
        for name, change in (c for f in functions for c in _changes(f, names)):
            read = _read_after(script, launch, name)
            if read is None or name in reported:
                continue
            reported.add(name)
            yield Claim(
                summary=f"{name} is changed in {launch.function.name}, in processes of its own: "
                "the parent that reads it here sees nothing of that",
                evidence=(script.evidence_for(read), script.evidence_for(change)),
                fix=f"{name} = multiprocessing.Manager().{names[name]}   # passed to {launch.function.name}",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(read),
            )


def _called_by(script: Script, function: Function) -> list[Function]:
    """Return the functions of the script that a function calls itself."""
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call))
    called = (resolver_of(script).called(call) for call in calls)
    return [f for f in dict.fromkeys(called) if f is not None and f is not function]


def _plain_globals(script: Script) -> dict[str, str]:
    """Return the lists, dicts, sets and numbers at the top of the script, with their shared counterparts."""
    names = {}
    for statement in script.tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        value = ast.unparse(statement.value)
        if value == "list()" or isinstance(statement.value, ast.List):
            names[statement.targets[0].id] = "list()"
        elif value in ("dict()", "set()") or isinstance(statement.value, ast.Dict):
            names[statement.targets[0].id] = "dict()"
        elif isinstance(statement.value, ast.Constant) and type(statement.value.value) in (
            int,
            float,
        ):
            names[statement.targets[0].id] = "Value('d', 0)"
    for class_name, body in script.class_bodies.items():
        for statement in body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                value = ast.unparse(statement.value)
                if value in ("[]", "list()", "{}", "dict()", "set()"):
                    kind = "list()" if value in ("[]", "list()") else "dict()"
                    names[f"{class_name}.{statement.targets[0].id}"] = kind
    return names


def _changes(function: Function, names: dict[str, str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the globals that a function changes, with where."""
    own = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
    declared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            declared |= set(node.names)
    own |= {
        n.id
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id not in declared
    }
    for node in ast.walk(function):
        name = _changed_name(node)
        rebinds = isinstance(node, ast.AugAssign)
        if name in names and name not in own and (name in declared or not rebinds):
            yield name, node


def _changed_name(node: ast.AST) -> str:
    """Return the variable that a node changes in place; "" if it changes none."""
    target: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if node.func.attr in _CHANGING_METHODS else None
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        target = node.value
    elif isinstance(node, ast.AugAssign):
        target = node.target
    while isinstance(target, ast.Subscript):
        target = target.value  # history["loss"].append(loss)
    if isinstance(target, ast.Attribute):
        return ast.unparse(target)
    return target.id if isinstance(target, ast.Name) else ""


def _read_after(script: Script, launch: Launch, name: str) -> ast.expr | None:
    """Return where the parent reads a variable after the processes were started."""
    home = script.enclosing_function(launch.call)
    for node in script.parents:
        if (
            isinstance(node, (ast.Name, ast.Attribute))
            and ast.unparse(node) == name
            and isinstance(node.ctx, ast.Load)
            and node.lineno > launch.call.lineno
            and script.enclosing_function(node) is home
        ):
            return node
    return None


_SCRIPT = """import torch
import torch.multiprocessing as mp
results = []
def work(rank):
    results.append(torch.ones(1))
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
    print(results)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a list to which the processes append": (
            ScriptFacts(source=_SCRIPT),
            "results is changed in work, in processes of its own: the parent that reads it here sees nothing "
            "of that",
        ),
        "a counter that the processes increase": (
            ScriptFacts(
                source=_SCRIPT.replace("[]", "0").replace(
                    "results.append(torch.ones(1))", "global results\n    results += 1"
                )
            ),
            "results is changed in work, in processes of its own: the parent that reads it here sees nothing "
            "of that",
        ),
    },
    silent_on={
        "a list that a Manager shares": ScriptFacts(
            source=_SCRIPT.replace("[]", "mp.Manager().list()")
        ),
        "a list that the parent does not read": ScriptFacts(
            source=_SCRIPT.replace("    print(results)\n", "")
        ),
        "the processes append to a local list of the same name": ScriptFacts(
            source=_SCRIPT.replace("def work(rank):", "def work(rank):\n    results = []")
        ),
        "a list that the function takes as a parameter": ScriptFacts(
            source=_SCRIPT.replace("work(rank)", "work(rank, results)")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
