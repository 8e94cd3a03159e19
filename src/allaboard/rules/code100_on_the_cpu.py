"""A tensor on the CPU is passed to NCCL.

## Why it matters
NCCL moves tensors between GPUs alone. A tensor that `torch.tensor(…)` or `torch.zeros(…)` makes is on the
CPU: the collective raises "No backend type associated with device type cpu" (before PyTorch 2: "Tensors must
be CUDA and dense").

## What to do
Make the tensor on the GPU, `torch.tensor(value, device="cuda")`, or join with both backends:
`init_process_group("cpu:gloo,cuda:nccl")`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.collective_calls import is_limited_to_group
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.flow.tensor_values import KEEPS_DEVICE, made_from
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_TENSORS = {"all_reduce": 0, "broadcast": 0, "reduce": 0, "all_gather": 1, "send": 0, "recv": 0}
"""Functions of torch.distributed with the position of their tensor."""
_MAKERS = frozenset(
    f"torch.{name}"
    for name in (
        "tensor",
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "arange",
        "FloatTensor",
    )
)
_OTHER_DEFAULT = re.compile(
    r"gloo|set_default_device|set_default_tensor_type|with torch\.device|\bmpi\b|xla"
)
"""Matches what may let a new tensor be on a GPU, or another backend take it."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "nccl" not in facts.source or _OTHER_DEFAULT.search(facts.source):
        return
    script = read_script(facts)
    inits = script.calls_of("torch.distributed.init_process_group")
    backends = [evaluate(script, call_argument(c, "backend", 0)) for c in inits]
    if not backends or set(backends) != {"nccl"}:
        return
    for name, position in _TENSORS.items():
        for call in script.calls_of(f"torch.distributed.{name}"):
            tensor = call_argument(call, "tensor", position)
            if tensor is None or is_limited_to_group(f"torch.distributed.{name}", call):
                continue
            values = list(made_from(script, tensor, KEEPS_DEVICE))
            if values and all(_is_on_cpu(script, v) for v, _ in values):
                yield _claim(script, call, name, tensor, values[0][0])


def _is_on_cpu(script: Script, value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and script.call_name(value.func) in _MAKERS
        and not any(k.arg in ("device", None) for k in value.keywords)
    )


def _claim(script: Script, call: ast.Call, name: str, tensor: ast.expr, made: ast.expr) -> Claim:
    return Claim(
        summary=f"{name} gets {ast.unparse(tensor)[:40]}, a tensor on the CPU, and NCCL moves those on a GPU "
        "alone: it raises an error",
        evidence=(script.evidence_for(call), script.evidence_for(made)),
        fix=f"{ast.unparse(made)[:60]}.cuda()",
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


_MEAN = (
    "import torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"
    "def mean(value):\n    t = torch.tensor(value)\n    dist.all_reduce(t)\n    return t.item()\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a number is averaged by a tensor on the CPU": (
            ScriptFacts(source=_MEAN),
            "all_reduce gets t, a tensor on the CPU, and NCCL moves those on a GPU alone: it raises an error",
        ),
        "a function gets a tensor on the CPU": (
            ScriptFacts(
                source=_MEAN.replace("    t = torch.tensor(value)\n", "").replace("value", "t")
                + "mean(torch.zeros(3).float())\n"
            ),
            "all_reduce gets t, a tensor on the CPU, and NCCL moves those on a GPU alone: it raises an error",
        ),
    },
    silent_on={
        "a tensor that is made on the GPU": ScriptFacts(
            source=_MEAN.replace("(value)\n", "(value, device='cuda')\n", 2).replace(
                "mean(value, device='cuda')", "mean(value)"
            )
        ),
        "a tensor that is moved": ScriptFacts(
            source=_MEAN.replace("torch.tensor(value)", "torch.tensor(value).cuda()")
        ),
        "a tensor that is moved later": ScriptFacts(
            source=_MEAN.replace("    dist.all", "    t = t.to(gpu)\n    dist.all")
        ),
        "Gloo for the CPU beside NCCL": ScriptFacts(
            source=_MEAN.replace("nccl", "cpu:gloo,cuda:nccl")
        ),
        "a tensor that the script gets from elsewhere": ScriptFacts(
            source=_MEAN.replace("torch.tensor(value)", "measure(value)")
        ),
        "a group with a backend of its own": ScriptFacts(
            source=_MEAN.replace("all_reduce(t)", "all_reduce(t, group=cpu_group)")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
