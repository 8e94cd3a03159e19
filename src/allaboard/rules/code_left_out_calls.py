"""Calls of accelerate, Fabric and Ray Train that a script leaves out: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_ACCELERATOR = "accelerate.Accelerator"
_FABRICS = ("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
_OWN_BACKWARD = re.compile(r"deepspeed|fsdp|16-mixed|transformer-engine")
"""Matches strategies and precisions of Fabric that have a backward of their own."""
_AVERAGES = re.compile(
    r"prepare_model|DistributedDataParallel|FullySharded|fully_shard|Accelerator|ightning|deepspeed|horovod"
    r"|all_reduce|transformers"
)
"""Matches what averages gradients in a training function of Ray Train."""


def _plain_backward(facts: ScriptFacts) -> Iterator[Claim]:
    if ".backward()" not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    for maker, reason in (*_accelerators(script), *_fabrics(script)):
        parent = script.parents[maker]
        if not isinstance(parent, ast.Assign):
            continue
        owner = ast.unparse(parent.targets[0])
        calls = script.method_calls("backward")
        backwards = [c for c in calls if not c.args and not c.keywords]
        is_own = any(c.args for c in calls)  # owner.backward(loss), an engine's or a scaler's
        is_prepared = f"{owner}.prepare(" in facts.source or f"{owner}.setup(" in facts.source
        if is_own or not backwards or not is_prepared or "scaler" in facts.source.lower():
            continue
        call = backwards[0]
        loss = ast.unparse(call.func).rpartition(".")[0]
        yield Claim(
            summary=f"{owner}.backward is left out: {reason}",
            evidence=(script.evidence_for(call), script.evidence_for(maker)),
            fix=f"{owner}.backward({loss})",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _accelerators(script: Script) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that make an accelerator with a backward of its own, and what that does."""
    for call in script.calls_of(_ACCELERATOR):
        precision = call_argument(call, "mixed_precision")
        rounds = call_argument(call, "gradient_accumulation_steps")
        if isinstance(precision, ast.Constant) and precision.value == "fp16":
            yield call, "with fp16 only that scales the loss, and the optimizer's step asserts it"
        elif (
            isinstance(rounds, ast.Constant) and isinstance(rounds.value, int) and rounds.value > 1
        ):
            yield (
                call,
                f"only that divides the loss by the {rounds.value} rounds of an accumulation",
            )


def _fabrics(script: Script) -> Iterator[tuple[ast.Call, str]]:
    for call in script.calls_of(*_FABRICS):
        for name in ("strategy", "precision"):
            value = call_argument(call, name)
            text = str(value.value) if isinstance(value, ast.Constant) else ""
            if _OWN_BACKWARD.search(text):
                yield call, f"with {name}={text!r} only that runs the backward which Fabric needs"
                break


def _not_launched(facts: ScriptFacts) -> Iterator[Claim]:
    if "Fabric(" not in facts.source or "launch" in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    for call in script.calls_of(*_FABRICS):
        devices = call_argument(call, "devices")
        strategy = call_argument(call, "strategy")
        is_one_process = isinstance(strategy, ast.Constant) and strategy.value == "dp"
        count = devices.value if isinstance(devices, ast.Constant) else None
        parent = script.parents[call]
        if type(count) is not int or count < 2 or is_one_process:
            continue
        if not isinstance(parent, ast.Assign):
            continue
        name = ast.unparse(parent.targets[0])
        setups = script.calls_of(*(f"{f}().setup" for f in _FABRICS))
        if not setups:
            continue
        yield Claim(
            summary=f"{name}.launch() is left out: nothing starts the {count} processes, and setup finds no "
            "process group",
            evidence=(script.evidence_for(call), script.evidence_for(setups[0])),
            fix=f"{name}.launch()   # before {ast.unparse(setups[0].func)}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _worker_alone(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "TorchTrainer(" not in source or _AVERAGES.search(source) or facts.is_piece:
        return
    script = read_script(facts)
    for trainer in [c for n, c in script.calls if n.endswith("train.torch.TorchTrainer")]:
        loop = call_argument(trainer, "train_loop_per_worker", 0)
        functions = script.functions_named(loop.id) if isinstance(loop, ast.Name) else []
        text = ast.unparse(functions[0]) if len(functions) == 1 else ""
        scaling = next((c for n, c in script.calls if n.endswith(".ScalingConfig")), None)
        count = call_argument(scaling, "num_workers", 1) if scaling is not None else None
        number = count.value if isinstance(count, ast.Constant) else None
        if ".backward()" not in text or count is None or number in (0, 1):
            continue
        optimizer = next((c for n, c in script.calls if n.startswith("torch.optim.")), None)
        if optimizer is None or not optimizer.args:
            continue
        model = ast.unparse(optimizer.args[0]).partition(".parameters")[0]
        yield Claim(
            summary=f"{model} does not go through prepare_model: nothing averages its gradients, and each "
            "worker trains a model of its own",
            evidence=(script.evidence_for(optimizer), script.evidence_for(trainer)),
            fix=f"{model} = ray.train.torch.prepare_model({model})   # before line {optimizer.lineno}",
            severity=Severity.ERROR if number is not None else Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(optimizer),
        )
        return


_ACCELERATED = """from accelerate import Accelerator
accelerator = Accelerator(mixed_precision="fp16")
model, opt, loader = accelerator.prepare(model, opt, loader)
for x in loader:
    loss = model(x).sum()
    loss.backward()
    opt.step()
"""
_FABRIC = """from lightning.fabric import Fabric
fabric = Fabric(devices=2, precision="16-mixed")
fabric.launch()
model, opt = fabric.setup(model, opt)
for x in loader:
    fabric.backward(model(x).sum())
    opt.step()
"""
_RAY = """import torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer
def train_loop():
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).sum().backward()
        opt.step()
TorchTrainer(train_loop, scaling_config=ScalingConfig(num_workers=4)).fit()
"""

RULES = {
    "code110_plain_backward": script_rule(
        page="""`loss.backward()` stands where the library's own backward belongs.

## Why it matters
`accelerator.backward(loss)` scales the loss for fp16 and divides it by the rounds of an accumulation;
`fabric.backward(loss)` runs the backward of a mixed precision or of DeepSpeed. PyTorch's own does neither:
the step fails, or goes by gradients of another size.

## What to do
`accelerator.backward(loss)`, `fabric.backward(loss)`.
""",
        check=_plain_backward,
        fires_on={
            "accelerate with fp16": (
                _ACCELERATED,
                "accelerator.backward is left out: with fp16 only that scales the loss, and the optimizer's "
                "step asserts it",
            ),
            "Fabric with a mixed precision": (
                _FABRIC.replace("fabric.backward(model(x).sum())", "model(x).sum().backward()"),
                "fabric.backward is left out: with precision='16-mixed' only that runs the backward which "
                "Fabric needs",
            ),
        },
        silent_on={
            "accelerate's own backward": _ACCELERATED.replace(
                "loss.backward()", "accelerator.backward(loss)"
            ),
            "no precision and no accumulation": _ACCELERATED.replace('mixed_precision="fp16"', ""),
            "bf16 needs no scaling": _ACCELERATED.replace("fp16", "bf16"),
            "a scaler of the script's own": _ACCELERATED.replace(
                "loss.backward()", "scaler.scale(loss).backward()"
            ),
            "Fabric's own backward": _FABRIC,
        },
    ),
    "code111_fabric_not_launched": script_rule(
        page="""A Fabric of several devices is never launched.

## Why it matters
`Fabric(devices=2)` describes the processes; `fabric.launch()` starts them and makes the process group.
Without it `setup` ends with "Default process group has not been initialized".

## What to do
`fabric.launch()` before the first `setup`; with `fabric run`, take `devices` out of the script.
""",
        check=_not_launched,
        fires_on={
            "two devices and no launch": (
                _FABRIC.replace("fabric.launch()\n", ""),
                "fabric.launch() is left out: nothing starts the 2 processes, and setup finds no process "
                "group",
            )
        },
        silent_on={
            "it is launched": _FABRIC,
            "a Fabric of one device": _FABRIC.replace("fabric.launch()\n", "").replace("=2", "=1"),
            "the devices come from the command line": _FABRIC.replace(
                "fabric.launch()\n", ""
            ).replace("devices=2, ", ""),
            "one process for all devices": _FABRIC.replace("fabric.launch()\n", "").replace(
                "devices=2", 'devices=2, strategy="dp"'
            ),
        },
    ),
    "code112_ray_model_not_prepared": script_rule(
        page="""Ray Train starts several workers, and nothing wraps their model.

## Why it matters
`TorchTrainer` makes the process group; only `prepare_model` wraps the model in DDP. Without it each worker
trains a model of its own, all of them report a loss, and one of the models is kept.

## What to do
`model = ray.train.torch.prepare_model(model)` in the training function, before the optimizer.
""",
        check=_worker_alone,
        fires_on={
            "four workers and a plain model": (
                _RAY,
                "model does not go through prepare_model: nothing averages its gradients, and each worker "
                "trains a model of its own",
            )
        },
        silent_on={
            "the model is prepared": _RAY.replace("Net()", "prepare_model(Net())"),
            "a single worker process": _RAY.replace("num_workers=4", "num_workers=1"),
            "nothing is trained there": _RAY.replace("model(x).sum().backward()", "model(x)"),
            "the model is wrapped by hand": _RAY.replace("Net()", "DistributedDataParallel(Net())"),
        },
    ),
}
