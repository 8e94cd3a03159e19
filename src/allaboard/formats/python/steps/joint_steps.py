"""Calls by which a script's step meets the other ranks: collectives, the backward of a wrapped model, metrics
that are computed over all ranks."""

from __future__ import annotations

import ast
import re

from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.collective_calls import (
    COLLECTIVE_CALLS,
    JOINT_CONSTRUCTORS,
    enters_collective,
    is_limited_to_group,
    meets_other_ranks,
)
from allaboard.formats.python.script_ast import Script

_WRAPPERS = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "horovod.torch.DistributedOptimizer",
)
LIGHTNING_DDP = re.compile(r"(?:strategy|accelerator)\s*=\s*['\"](?:ddp|fsdp|deepspeed)")
"""Matches the argument by which Lightning's trainer averages gradients over several ranks."""


class JointSteps:
    """What the steps of one script do together with the other ranks."""

    def __init__(self, script: Script) -> None:
        source = "\n".join(script.lines)
        self._script = script
        self._reach = CallGraph(script)
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
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        calls.sort(key=lambda n: (n.lineno, n.col_offset))
        for call in calls:
            entered = self._entered(call)
            if entered and self._script.rank_condition(call) is None:
                return entered, call
        return None

    def _entered(self, call: ast.Call) -> str:
        name = self._script.call_name(call.func)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method in ("backward", "manual_backward") and self.averages:
            return method
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
        return ""
