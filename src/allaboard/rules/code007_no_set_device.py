"""NCCL is used, but all processes of a host use the default GPU.

## Why it matters
`.cuda()` and `"cuda"` mean GPU 0 until `torch.cuda.set_device` says otherwise. All ranks of a host then
share GPU 0: NCCL refuses two ranks on one device, or hangs in the first collective, while the other GPUs
stand idle.

## What to do
Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before `init_process_group`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if script.uses_launching_library:
        return
    inits = [c for c in script.calls_of("torch.distributed.init_process_group") if _uses_nccl(c)]
    if not inits or _chooses_device(script, facts.source):
        return
    default_use = _default_device_use(script)
    if default_use is None:
        return
    yield Claim(
        summary="every process of a host uses GPU 0: none selects a GPU of its own",
        evidence=(script.evidence_for(default_use), script.evidence_for(inits[0])),
        fix='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))   # '
        f"before line {inits[0].lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(inits[0]),
    )


def _uses_nccl(call: ast.Call) -> bool:
    backend = call_argument(call, "backend", 0)
    device = call_argument(call, "device_id")
    return isinstance(backend, ast.Constant) and backend.value == "nccl" and device is None


def _chooses_device(script: Script, source: str) -> bool:
    """Return True if the script chooses a device in any way."""
    if "CUDA_VISIBLE_DEVICES" in source or "set_device" in source or "device_ids" in source:
        return True
    return bool(script.calls_of("torch.cuda.device")) or "cuda:" in source


def _default_device_use(script: Script) -> ast.AST | None:
    """Return the call that uses the default GPU, or None."""
    for call in script.method_calls("cuda"):
        if not call.args and not call.keywords:
            return call
    for call in script.method_calls("to", "device"):
        device = call.args[0] if call.args else None
        if isinstance(device, ast.Constant) and device.value == "cuda" and len(call.args) == 1:
            return call
    return None


_INIT = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("nccl")\n'

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "plain cuda": (
            ScriptFacts(source=_INIT + "model = Net().cuda()\n"),
            "every process of a host uses GPU 0: none selects a GPU of its own",
        )
    },
    silent_on={
        "set": ScriptFacts(source=_INIT + "torch.cuda.set_device(rank)\nmodel = Net().cuda()\n"),
        "by rank": ScriptFacts(source=_INIT + "model = Net().to(rank)\n"),
        "gloo": ScriptFacts(source=_INIT.replace("nccl", "gloo") + "model = Net().cuda()\n"),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
