"""Calls by which a script's step meets the other ranks: collectives, the backward of a wrapped model, metrics
that are computed over all ranks."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from allaboard.formats.python.call_graph import call_graph_of
from allaboard.formats.python.collective_calls import (
    COLLECTIVE_CALLS,
    JOINT_CONSTRUCTORS,
    enters_collective,
    is_limited_to_group,
    meets_other_ranks,
)
from allaboard.formats.python.script_ast import Function, Script

_WRAPPERS = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "horovod.torch.DistributedOptimizer",
)
MAX_DEPTH = 8
"""Functions that are followed into each other."""
_BACKWARD = ("backward", "manual_backward")
LIGHTNING_DDP = re.compile(r"(?:strategy|accelerator)\s*=\s*['\"](?:ddp|fsdp|deepspeed)")
"""Matches the argument by which Lightning's trainer averages gradients over several ranks."""


class JointSteps:
    """What the steps of one script do together with the other ranks."""

    def __init__(self, script: Script) -> None:
        source = "\n".join(script.lines)
        self._script = script
        self._depth = 0
        self._entered_by: dict[ast.AST, tuple[str, ast.Call] | None] = {}
        self._reach = call_graph_of(script)
        self.is_lightning = LIGHTNING_DDP.search(source) is not None
        self.averages = (
            bool(script.calls_of(*_WRAPPERS))
            or ("accelerate" in source and bool(script.method_calls("prepare")))
            or self.is_lightning
        )
        """True if a backward averages the gradients of all ranks."""
        self._has_ranks = self.is_lightning or script.is_distributed

    def entered_by(self, node: ast.AST) -> tuple[str, ast.Call] | None:
        """Return the first call below a node that meets the other ranks, and what it enters; None if none
        certainly does."""
        if node not in self._entered_by:
            self._entered_by[node] = None  # while it is looked at: a function may call itself
            self._entered_by[node] = self._first_call(node)
        return self._entered_by[node]

    def _first_call(self, node: ast.AST) -> tuple[str, ast.Call] | None:
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        calls.sort(key=lambda n: (n.lineno, n.col_offset))
        for call in calls:
            entered = self._entered(call)
            if entered and self._script.rank_condition(call) is None:
                return entered, call
        return None

    def first_entered(self, block: list[ast.stmt]) -> tuple[str, ast.Call] | None:
        """Return the first call of a block that meets the other ranks, and what it enters."""
        return next(filter(None, map(self.entered_by, block)), None)

    def is_entered_in(self, block: list[ast.stmt]) -> bool:
        """Return True if a block meets the other ranks."""
        return self.first_entered(block) is not None

    def _entered(self, call: ast.Call) -> str:
        name = self._script.call_name(call.func)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method in _BACKWARD and self.averages:
            return "" if _is_without_averaging(self._script, call) else method
        if name.startswith("torchmetrics.") and name.endswith("().compute") and self._has_ranks:
            return "compute"
        direct = enters_collective(name, call)
        entered = [(name, call)] if direct else self._reach.certain_calls(call, COLLECTIVE_CALLS)
        for entered_name, inner in entered:
            if (
                entered_name not in JOINT_CONSTRUCTORS
                and meets_other_ranks(entered_name, self._script)
                and not is_limited_to_group(entered_name, inner)
            ):
                return entered_name.rpartition(".")[2]
        function = self._reach.called_function(call) if self.averages else None
        reached = None
        if function is not None and self._depth < MAX_DEPTH:
            self._depth += 1
            reached = self.entered_by(function)
            self._depth -= 1
        if function is None or reached is None or reached[0] not in _BACKWARD:
            return ""
        return "" if _is_by_argument(self._script, reached[1], function) else reached[0]


def _is_by_argument(script: Script, call: ast.Call, function: Function) -> bool:
    """Return True if a condition on the function's own parameters decides whether it comes to the call."""
    names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
    return any(
        isinstance(ancestor, ast.If)
        and any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(ancestor.test))
        for ancestor in script.ancestors(call)
    )


def _is_without_averaging(script: Script, call: ast.Call) -> bool:
    """Return True for a backward inside of ``with model.no_sync():``."""
    return any(
        isinstance(a, ast.With) and any("no_sync(" in ast.unparse(i.context_expr) for i in a.items)
        for a in script.ancestors(call)
    )


@lru_cache(maxsize=4)
def joint_steps_of(script: Script) -> JointSteps:
    """Return what the steps of a script do together, read once for all rules."""
    return JointSteps(script)
