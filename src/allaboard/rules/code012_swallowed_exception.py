"""An exception in the training step is swallowed, and the rank goes on to the next step.

## Why it matters
The step that failed on one rank did not enter its collectives, and the other ranks wait in them. The rank
that went on enters the *next* ones, which pair with the wrong ones or never match. One clear traceback has
become a hang or wrong numbers.

## What to do
Let the exception end the process: its peers fail within a second, and the launcher can restart all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script

_STEP_CALLS = ("backward", "all_reduce", "barrier", "experimental_run_v2", "apply_gradients")
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
_BROAD_EXCEPTIONS = ("Exception", "BaseException", "RuntimeError")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if not script.is_distributed:
        return
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Try) or not _is_training_step(script, node):
            continue
        if not any(isinstance(a, (ast.For, ast.While)) for a in script.ancestors(node)):
            continue
        for handler in node.handlers:
            if _is_broad(handler) and _only_logs(handler):
                yield Claim(
                    summary="an exception in the training step is swallowed, and this rank goes on "
                    "without its peers",
                    evidence=(script.evidence_for(handler), script.evidence_for(node.body[0])),
                    fix="raise   # as the last line of the handler",
                    severity=Severity.WARNING,
                    certainty=Certainty.LIKELY,
                    where=script.place_of(handler),
                )


def _is_training_step(script: Script, node: ast.Try) -> bool:
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
    for statement in handler.body:
        if isinstance(statement, (ast.Pass, ast.Continue, ast.AugAssign)):
            continue
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        function_name = ast.unparse(statement.value.func).rpartition(".")[2]
        if function_name not in _LOGGING_CALLS:
            return False
    return True


_LOOP = """import torch.distributed as dist
dist.init_process_group("gloo")
for batch in loader:
    try:
        loss(batch).backward()
    except Exception as error:
        HANDLER
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "printed and forgotten": (
            ScriptFacts(source=_LOOP.replace("HANDLER", "print(error)")),
            "an exception in the training step is swallowed, and this rank goes on without its "
            "peers",
        )
    },
    silent_on={
        "raised again": ScriptFacts(source=_LOOP.replace("HANDLER", "raise")),
        "one process": ScriptFacts(
            source=_LOOP.replace("HANDLER", "pass").replace("dist.init", "other.init")
        ),
        "a narrow one": ScriptFacts(
            source=_LOOP.replace("Exception as error", "StopIteration").replace("HANDLER", "pass")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
