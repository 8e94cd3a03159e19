"""Mistakes in what accelerate and DeepSpeed are given and asked for: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import shards_parameters
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_ACCELERATOR = "accelerate.Accelerator()"
_OPTIMIZER = re.compile(r"torch\.optim\.[A-Z]\w*")
_ENGINE = "deepspeed.initialize"
_UNPADDED = (
    "generate returns sequences of another length on each process, and gather needs one length"
)


def _not_prepared(facts: ScriptFacts) -> Iterator[Claim]:
    if "accelerate" not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    prepares = script.calls_of(f"{_ACCELERATOR}.prepare")
    backwards = script.calls_of(f"{_ACCELERATOR}.backward")
    model_prepares = script.method_calls("prepare_model", "prepare_fsdp")
    passed = {ast.unparse(a) for c in (*prepares, *model_prepares) for a in c.args}
    if not prepares or not backwards or any(text.startswith("*") for text in passed):
        return
    for name, call in script.calls:
        parent = script.parents.get(call)
        if not _OPTIMIZER.fullmatch(name) or not isinstance(parent, ast.Assign) or not call.args:
            continue
        parameters = call.args[0]
        if not isinstance(parameters, ast.Call):
            continue
        model, dot, method = ast.unparse(parameters).partition(".")
        if not dot or method != "parameters()":
            continue
        optimizer = full_name(parent.targets[0], {})
        if optimizer not in passed or model in passed:
            continue
        if not _is_called(script, model) or f"DistributedDataParallel({model}" in facts.source:
            continue
        yield Claim(
            summary=f"{model} is not passed to accelerator.prepare: nothing averages its gradients, and each "
            "process trains a model of its own",
            evidence=(script.evidence_for(prepares[0]), script.evidence_for(call)),
            fix=f"{model} = {ast.unparse(prepares[0].func)}({model})   # or with the others in line "
            f"{prepares[0].lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(prepares[0]),
        )
        return


def _is_called(script: Script, model: str) -> bool:
    return any(isinstance(c.func, ast.Name) and c.func.id == model for _, c in script.calls)


def _gathered_unpadded(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if ".generate(" not in source or "accelerat" not in source:
        return
    if "pad_across_processes" in source or "gather_object" in source:
        return
    script = read_script(facts)
    for call in script.calls_of(f"{_ACCELERATOR}.gather", f"{_ACCELERATOR}.gather_for_metrics"):
        passed = call.args[0] if call.args else None
        parts = passed.elts if isinstance(passed, (ast.Tuple, ast.List)) else [passed]
        generation = next(
            (m for p in parts if (m := _generated(script, p, call)) is not None), None
        )
        if generation is None or script.rank_condition(call) is not None:
            continue
        yield Claim(
            summary=_UNPADDED,
            evidence=(script.evidence_for(call), script.evidence_for(generation)),
            fix=f"{ast.unparse(call.func).rpartition('.')[0]}.pad_across_processes(…, dim=1, pad_index=…)   "
            "# before it",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _generated(script: Script, passed: ast.expr | None, gather: ast.Call) -> ast.Call | None:
    """Return the `generate` whose tokens a gather gets as they are; None if they come from elsewhere."""
    values = script.ranks.bound_values(passed) if isinstance(passed, ast.Name) else [passed]
    values = [v for v in values if v is None or gather not in ast.walk(v)]
    value = values[0] if len(values) == 1 else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    return value if value.func.attr == "generate" else None


def _beside_the_engine(facts: ScriptFacts) -> Iterator[Claim]:
    if _ENGINE not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    if script.calls_of(f"{_ENGINE}().backward", f"{_ENGINE}().step"):
        return
    engines = [c for c in script.calls_of(_ENGINE) if isinstance(script.parents.get(c), ast.Assign)]
    backwards = script.method_calls("backward")
    steps = script.method_calls("step")
    if len(engines) != 1 or len(backwards) != 1 or not steps or backwards[0].args:
        return
    target = script.parents[engines[0]].targets[0]  # type: ignore[attr-defined]
    names = list(map(ast.unparse, target.elts)) if isinstance(target, ast.Tuple) else []
    owner = ast.unparse(steps[0].func.value) if isinstance(steps[0].func, ast.Attribute) else ""
    if len(names) != 4 or owner != names[1] or not _is_called(script, names[0]):
        return
    engine, loss = names[0], ast.unparse(backwards[0].func).rpartition(".")[0]
    yield Claim(
        summary=f"the loss and the optimizer go past DeepSpeed's engine: {engine} counts its steps and "
        "averages gradients in its own backward and step",
        evidence=(script.evidence_for(backwards[0]), script.evidence_for(steps[0])),
        fix=f"{engine}.backward({loss}); {engine}.step()",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(backwards[0]),
    )


def _state_in_shards(facts: ScriptFacts) -> Iterator[Claim]:
    if _ENGINE not in facts.source or "torch.save(" not in facts.source:
        return
    script = read_script(facts)
    if not shards_parameters(script) or "GatheredParameters" in facts.source:
        return
    for call in script.calls_of("torch.save"):
        states = [
            n
            for a in call.args
            for n in ast.walk(a)
            if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".module.state_dict")
        ]
        if not states:
            continue
        engine = ast.unparse(states[0].func).removesuffix(".module.state_dict")
        yield Claim(
            summary="under ZeRO-3 each rank holds a share of the parameters: this file gets empty tensors in "
            "their place",
            evidence=(script.evidence_for(call),),
            fix=f"{engine}.save_16bit_model(FOLDER)   # on all ranks, with "
            "stage3_gather_16bit_weights_on_model_save",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


_ACCELERATED = (
    "import torch\nfrom accelerate import Accelerator\naccelerator = Accelerator()\nmodel = Net()\n"
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nopt, loader = accelerator.prepare(opt, loader)\n"
    "for x in loader:\n    accelerator.backward(model(x).sum())\n    opt.step()\n"
)
_GENERATED = (
    "from accelerate import Accelerator\naccelerator = Accelerator()\nfor x in loader:\n"
    "    tokens = accelerator.unwrap_model(model).generate(**x)\n"
    "    tokens = PAD\n    every = accelerator.gather(tokens)\n"
)
_PLAIN = _GENERATED.replace("    tokens = PAD\n", "")
_PAST = (
    "import deepspeed\nengine, opt, _, _ = deepspeed.initialize(model=net, config=cfg)\n"
    "for x in data:\n    loss = engine(x).sum()\n    loss.backward()\n    opt.step()\n"
)
_SHARDS = (
    "import torch\nimport deepspeed\nfrom transformers.integrations import HfDeepSpeedConfig\n"
    "keep = HfDeepSpeedConfig(cfg)\nengine, _, _, _ = deepspeed.initialize(model=net, config=cfg)\n"
    "if engine.global_rank == 0:\n    torch.save(engine.module.state_dict(), 'm.pt')\n"
)
_UNPADDED = (
    "generate returns sequences of another length on each process, and gather needs one length"
)

RULES = {
    "code075_not_prepared": script_rule(
        page="""accelerate prepares the optimizer, and not the model that it steps.

## Why it matters
`accelerator.prepare` wraps the model in DDP, and only that averages gradients. A model that did not go
through it is trained by each process alone; all of them report a loss, and the main process saves its
own.

## What to do
`model, optimizer, loader = accelerator.prepare(model, optimizer, loader)`.
""",
        check=_not_prepared,
        fires_on={
            "the optimizer and the loader are prepared": (
                _ACCELERATED,
                "model is not passed to accelerator.prepare: nothing averages its gradients, and each "
                "process trains a model of its own",
            )
        },
        silent_on={
            "the model is prepared, too": _ACCELERATED.replace(
                "opt, loader = accelerator.prepare(opt,",
                "model, opt, loader = accelerator.prepare(model, opt,",
            ),
            "the model is prepared by itself": _ACCELERATED.replace(
                "opt, loader =", "model = accelerator.prepare(model)\nopt, loader ="
            ),
            "a list of all objects is prepared": _ACCELERATED.replace(
                "(opt, loader)", "(*objects)"
            ),
            "the optimizer of another model": _ACCELERATED.replace("model.param", "head.param"),
        },
    ),
    "code080_gathered_unpadded": script_rule(
        page="""Sequences that `generate` returns are gathered without padding.

## Why it matters
Each process generates until its own batch is done, so the sequences have different lengths. `gather`
needs one shape on all processes: it hangs, or its values are shifted, as soon as two of them differ.

## What to do
`tokens = accelerator.pad_across_processes(tokens, dim=1, pad_index=tokenizer.pad_token_id)` before the
gather.
""",
        check=_gathered_unpadded,
        fires_on={"generated tokens are gathered as they are": (_PLAIN, _UNPADDED)},
        silent_on={
            "the tokens are padded": _GENERATED.replace(
                "PAD", "accelerator.pad_across_processes(tokens, dim=1)"
            ),
            "the tokens are padded by the script": _GENERATED.replace("PAD", "pad(tokens, 128)"),
            "labels are gathered": _PLAIN.replace("gather(tokens)", "gather(x['labels'])"),
        },
    ),
    "code081_beside_the_engine": script_rule(
        page="""The loss and the optimizer go past DeepSpeed's engine.

## Why it matters
The engine scales the loss, averages and shards the gradients and counts its steps in
`engine.backward(loss)` and `engine.step()`. With `loss.backward()` and `optimizer.step()` in their place,
most versions neither average nor accumulate; nothing says so.

## What to do
`engine.backward(loss)` and `engine.step()`, without `zero_grad`.
""",
        check=_beside_the_engine,
        fires_on={
            "loss.backward and optimizer.step": (
                _PAST,
                "the loss and the optimizer go past DeepSpeed's engine: engine counts its steps and averages "
                "gradients in its own backward and step",
            )
        },
        silent_on={
            "the engine's own backward and step": _PAST.replace(
                "loss.backward()", "engine.backward(loss)"
            ).replace("opt.step", "engine.step"),
            "the engine's step after a backward of PyTorch": _PAST.replace(
                "opt.step", "engine.step"
            ),
            "another optimizer beside the engine": _PAST.replace("opt.step", "probe_opt.step"),
        },
    ),
    "code082_state_in_shards": script_rule(
        page="""The state of a ZeRO-3 model is saved as one rank sees it.

## Why it matters
ZeRO-3 deals out the parameters over the ranks. `engine.module.state_dict()` has tensors without elements
where the parameters were, and `torch.save` writes them without a word: the checkpoint is empty.

## What to do
Call `engine.save_16bit_model(folder)` or `engine.save_checkpoint(folder)` on all ranks.
""",
        check=_state_in_shards,
        fires_on={
            "rank 0 saves the module's state": (
                _SHARDS,
                "under ZeRO-3 each rank holds a share of the parameters: this file gets empty tensors in "
                "their place",
            )
        },
        silent_on={
            "a model that is not in shards": _SHARDS.replace("keep = HfDeepSpeedConfig(cfg)\n", ""),
            "the parameters are gathered first": _SHARDS.replace(
                "    torch.save",
                "    with deepspeed.zero.GatheredParameters(p):\n        torch.save",
            ),
            "the engine saves": _SHARDS.replace(
                "torch.save(engine.module.state_dict(), 'm.pt')", "print()"
            ),
        },
    ),
}
