"""An exception in the training step, the loop or the distributed init is swallowed, and the rank goes on.

## Why it matters
The step that failed on one rank did not enter its collectives, and the other ranks wait in them. The rank
that went on enters the *next* ones, which pair with the wrong ones or never match. One clear traceback has
become a hang or wrong numbers. Around the whole loop, the rank ends as if it had finished, with exit code
0, so that no launcher restarts anything. A batch that is skipped because it does not fit into one GPU's
memory has the same effect: the other ranks do not skip it. Around the init, the rank trains alone while the
others wait for it.

## What to do
Let the exception end the process: its peers fail within a second, and the launcher can restart all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.flow.loops import repeating_loop
from allaboard.formats.python.resolution import resolver_of
from allaboard.formats.python.script_ast import Function, Script, read_script

_STEP_CALLS = ("backward", "all_reduce", "barrier", "experimental_run_v2", "apply_gradients")
_INIT_CALLS = frozenset(
    (
        "torch.distributed.init_process_group",
        "jax.distributed.initialize",
        "tensorflow.distribute.MultiWorkerMirroredStrategy",
    )
)
_ENDS_SILENTLY = (
    "an exception in the training loop is swallowed: this rank ends as if it had finished"
)
_LOGGING_CALLS = (
    "print",
    "warn",
    "warning",
    "info",
    "error",
    "exception",
    "debug",
    "write",
    "print_exc",
)
_BROAD_EXCEPTIONS = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError")
_CLEARING_CALLS = ("empty_cache", "zero_grad", "collect", "synchronize")
"""Calls by which a handler makes room for the next batch."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if not script.is_distributed and "distributed.initialize" not in facts.source:
        return
    for node in ast.walk(script.tree):
        if isinstance(node, ast.With) and _suppresses(script, node):
            yield from _suppressed(script, node)
        summary = _swallowed(script, node) if isinstance(node, ast.Try) else ""
        if not summary or not isinstance(node, ast.Try):
            continue
        for handler in node.handlers:
            if _is_broad(handler) and _only_logs(handler):
                yield Claim(
                    summary=summary,
                    evidence=(script.evidence_for(handler), script.evidence_for(node.body[0])),
                    fix=_fix(handler),
                    severity=Severity.WARNING,
                    certainty=Certainty.LIKELY,
                    where=script.place_of(handler),
                )


def _fix(handler: ast.ExceptHandler) -> str:
    """Return where to let the exception through: everywhere, or also where the handler skips the batch."""
    skipped = next((s for s in handler.body if isinstance(s, ast.If)), None)
    return (
        f"raise   # also where line {skipped.lineno} holds: the other ranks do not skip this batch"
        if skipped is not None
        else "raise   # as the last line of the handler"
    )


def _suppresses(script: Script, node: ast.With) -> bool:
    """Return True for ``with contextlib.suppress(RuntimeError):``."""
    return any(
        isinstance(item.context_expr, ast.Call)
        and script.call_name(item.context_expr.func) == "contextlib.suppress"
        and any(n in ast.unparse(a) for a in item.context_expr.args for n in _BROAD_EXCEPTIONS)
        for item in node.items
    )


def _suppressed(script: Script, node: ast.With) -> Iterator[Claim]:
    summary = _swallowed(script, node)
    if summary:
        yield Claim(
            summary=summary,
            evidence=(script.evidence_for(node), script.evidence_for(node.body[0])),
            fix=f"{script.source_line(node.body[0])}   # outside of the with of line {node.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )


def _swallowed(script: Script, node: ast.Try | ast.With) -> str:
    """Return what a handler of this `try` would swallow; "" if no other rank waits for it."""
    if any(_is_init(script, n) for statement in node.body for n in ast.walk(statement)):
        return (
            "an exception in the distributed init is swallowed, and this rank goes on alone while the others "
            "wait for it"
        )
    if not _is_training_step(script, node):
        called = [f for s in node.body for f in _called_functions(script, s)]
        if any(_trains_in_loop(script, function) for function in called):
            return _ENDS_SILENTLY
        if not any(_is_training_step(script, function) for function in called):
            return ""
    if repeating_loop(script, node) is not None:
        return "an exception in the training step is swallowed, and this rank goes on without its peers"
    if any(isinstance(n, (ast.For, ast.While)) for s in node.body for n in ast.walk(s)):
        return _ENDS_SILENTLY
    return ""


def _called_functions(script: Script, node: ast.AST) -> list[Function]:
    """Return the functions of the script that are called below a node, and those that these call."""
    functions: list[Function] = []
    pending: list[ast.AST] = [node]
    while pending:
        for call in ast.walk(pending.pop()):
            callee = resolver_of(script).called(call) if isinstance(call, ast.Call) else None
            if callee is not None and callee not in functions:
                functions.append(callee)
                pending.append(callee)
    return functions


def _trains_in_loop(script: Script, function: Function) -> bool:
    """Return True if a function has a loop in which it does a training step."""
    loops = [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While))]
    return any(_is_training_step(script, loop) for loop in loops)


def _is_init(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.call_name(node.func) in _INIT_CALLS


def _is_training_step(
    script: Script, node: ast.Try | ast.With | ast.For | ast.While | Function
) -> bool:
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and (n.func.attr in _STEP_CALLS or script.call_name(n.func).endswith("Strategy().run"))
        for statement in node.body
        for n in ast.walk(statement)
    )


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(name in ast.unparse(handler.type) for name in _BROAD_EXCEPTIONS)


def _only_logs(handler: ast.ExceptHandler) -> bool:
    """Return True if the handler certainly does no more than log the exception and count it."""
    return _is_skipped(handler.body)


def _is_skipped(body: list[ast.stmt]) -> bool:
    """Return True if a block goes on to the next batch as if nothing had happened."""
    for statement in body:
        if isinstance(statement, (ast.Pass, ast.AugAssign, ast.Delete)):
            continue
        is_empty = isinstance(statement, ast.Return) and (
            statement.value is None or ast.unparse(statement.value) == "None"
        )
        if isinstance(statement, ast.Continue) or is_empty:
            return True
        if isinstance(statement, ast.If) and _is_about_memory(statement.test):
            # `if "out of memory" in str(error): skip the batch; else: raise` skips it on this rank alone.
            return _is_skipped(statement.body)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        function_name = ast.unparse(statement.value.func).rpartition(".")[2]
        if function_name not in _LOGGING_CALLS + _CLEARING_CALLS:
            return False
    return True


def _is_about_memory(test: ast.expr) -> bool:
    text = ast.unparse(test).lower()
    return "memory" in text and not isinstance(test, ast.BoolOp)


_LOOP = """import torch.distributed as dist
dist.init_process_group("gloo")
for batch in loader:
    try:
        loss(batch).backward()
    except Exception as error:
        HANDLER
"""
_STEP_FUNCTION = """import torch.distributed as dist
dist.init_process_group("gloo")
def train_step(batch):
    loss(batch).backward()
for batch in loader:
    try:
        train_step(batch)
    except Exception as error:
        HANDLER
"""
_SUPPRESSED = """import contextlib
import torch.distributed as dist
dist.init_process_group("gloo")
for batch in loader:
    with contextlib.suppress(RuntimeError):
        loss(batch).backward()
"""
_AROUND_LOOP = """import torch.distributed as dist
dist.init_process_group("gloo")
try:
    for batch in loader:
        loss(batch).backward()
except RuntimeError as error:
    HANDLER
"""
_AROUND_INIT = """import torch.distributed as dist
try:
    dist.init_process_group("nccl")
except RuntimeError as error:
    HANDLER
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "`contextlib.suppress(RuntimeError)` around the step": (
            ScriptFacts(source=_SUPPRESSED),
            "an exception in the training step is swallowed, and this rank goes on without its peers",
        ),
        "the handler skips a batch for which the GPU has too little memory": (
            ScriptFacts(
                source=_LOOP.replace(
                    "HANDLER",
                    "if 'out of memory' in str(error):\n"
                    "            torch.cuda.empty_cache()\n            continue\n        raise",
                )
            ),
            "an exception in the training step is swallowed, and this rank goes on without its peers",
        ),
        "the handler prints the exception, and the loop goes on": (
            ScriptFacts(source=_LOOP.replace("HANDLER", "print(error)")),
            "an exception in the training step is swallowed, and this rank goes on without its peers",
        ),
        "the step is a function, and the handler around its call takes the next batch": (
            ScriptFacts(source=_STEP_FUNCTION.replace("HANDLER", "continue")),
            "an exception in the training step is swallowed, and this rank goes on without its peers",
        ),
        "the handler around the whole loop prints the exception": (
            ScriptFacts(source=_AROUND_LOOP.replace("HANDLER", "print(error)")),
            "an exception in the training loop is swallowed: this rank ends as if it had finished",
        ),
        "the handler around `init_process_group` prints the exception": (
            ScriptFacts(source=_AROUND_INIT.replace("HANDLER", "print(error)")),
            "an exception in the distributed init is swallowed, and this rank goes on alone while the "
            "others wait for it",
        ),
    },
    silent_on={
        "`contextlib.suppress(FileNotFoundError)` around the step": ScriptFacts(
            source=_SUPPRESSED.replace("(RuntimeError)", "(FileNotFoundError)")
        ),
        "the handler skips a batch only if there is one rank": ScriptFacts(
            source=_LOOP.replace(
                "HANDLER",
                "if 'memory' in str(error) and world_size == 1:\n"
                "            continue\n        raise",
            )
        ),
        "the handler tells the other ranks, and raises the exception again": ScriptFacts(
            source=_LOOP.replace(
                "HANDLER", "if 'memory' in str(error):\n            tell_all(error)\n        raise"
            )
        ),
        "the handler is around a function that does no training step": ScriptFacts(
            source=_STEP_FUNCTION.replace("HANDLER", "continue").replace("backward", "item")
        ),
        "the step is a function, and the handler raises its exception again": ScriptFacts(
            source=_STEP_FUNCTION.replace("HANDLER", "print(error); raise")
        ),
        "the handler around `init_process_group` switches to training without it": ScriptFacts(
            source=_AROUND_INIT.replace("HANDLER", "print(error); distributed = False")
        ),
        "the handler around the whole loop exits with code 1": ScriptFacts(
            source=_AROUND_LOOP.replace("HANDLER", "print(error); sys.exit(1)")
        ),
        "the handler around the whole loop catches Ctrl+C (KeyboardInterrupt)": ScriptFacts(
            source=_AROUND_LOOP.replace("RuntimeError", "KeyboardInterrupt").replace(
                "HANDLER", "print(error)"
            )
        ),
        "the handler raises the exception again": ScriptFacts(
            source=_LOOP.replace("HANDLER", "raise")
        ),
        "a script without `init_process_group`": ScriptFacts(
            source=_LOOP.replace("HANDLER", "pass").replace("dist.init", "other.init")
        ),
        "the handler catches StopIteration alone": ScriptFacts(
            source=_LOOP.replace("Exception as error", "StopIteration").replace("HANDLER", "pass")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
