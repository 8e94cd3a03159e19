"""The ranks generate from a ZeRO-3 model, and each stops when its own text ends.

## Why it matters
Under ZeRO-3 every forward gathers the parameters from all ranks, and `generate` runs one for each token. A
rank whose text has ended leaves the loop; the others wait for it in the next gather, until the timeout.
transformers keeps the ranks together by itself only if it knows of ZeRO-3: by its Trainer, or by an
`HfDeepSpeedConfig` that is kept.

## What to do
`engine.module.generate(inputs, synced_gpus=True)`: ranks that are done go on until all are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.call_parameters import written_entries
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_KNOWN_TO_TRANSFORMERS = re.compile(
    r"Hf(?:Trainer)?DeepSpeedConfig|TrainingArguments|Trainer\(|Accelerator\("
)
"""Matches what tells transformers of ZeRO-3; its `generate` then keeps the ranks together."""
_INITIALIZE = "deepspeed.initialize"


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "deepspeed" not in facts.source or ".generate(" not in facts.source:
        return
    if _KNOWN_TO_TRANSFORMERS.search(facts.source):
        return
    script = read_script(facts)
    for made in script.calls_of(_INITIALIZE):
        config = call_argument(made, "config") or call_argument(made, "config_params")
        stage = _stage(script, config) if config is not None else None
        if stage is None:
            continue
        names = _model_names(script, made)
        for call in script.method_calls("generate"):
            receiver = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            if receiver not in names or script.rank_condition(call) is not None:
                continue
            if any(k.arg in ("synced_gpus", None) for k in call.keywords):
                continue
            yield Claim(
                summary="each rank generates until its own text ends, and under ZeRO-3 every token needs all "
                "ranks: those that are not done wait for the others",
                evidence=(script.evidence_for(call), script.evidence_for(stage)),
                fix=f"{receiver}.generate(…, synced_gpus=True)",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _stage(script: Script, config: ast.expr) -> ast.expr | None:
    """Return the entry of a configuration in the script that asks for ZeRO-3; None if it does not."""
    entries = written_entries(resolve(script, config, into_functions=True)) or {}
    zero = entries.get("zero_optimization")
    stage = (
        (written_entries(resolve(script, zero)) or {}).get("stage") if zero is not None else None
    )
    return stage if stage is not None and evaluate(script, stage) == 3 else None


def _model_names(script: Script, made: ast.Call) -> set[str]:
    """Return the names of the engine and of the model in it."""
    parent = script.parents.get(made)
    statement = script.parents.get(parent) if isinstance(parent, ast.Subscript) else parent
    names: set[str] = set()
    model = call_argument(made, "model", 1)
    if isinstance(model, (ast.Name, ast.Attribute)):
        names.add(ast.unparse(model))
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        engine = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
        names |= {ast.unparse(engine), f"{ast.unparse(engine)}.module"}
    return names


_ENGINE = (
    "import deepspeed\nconfig = {'zero_optimization': {'stage': 3}, 'train_micro_batch_size_per_gpu': 1}\n"
    "engine, _, _, _ = deepspeed.initialize(model=net, config=config)\n"
    "print(engine.module.generate(prompts, do_sample=True))\n"
)
_ALONE = (
    "each rank generates until its own text ends, and under ZeRO-3 every token needs all ranks: those that "
    "are not done wait for the others"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the model of an engine of stage 3 generates without `synced_gpus`": (
            ScriptFacts(source=_ENGINE),
            _ALONE,
        ),
        "the stage comes from a variable, and the engine is the first of what is returned": (
            ScriptFacts(
                source=_ENGINE.replace("'stage': 3", "'stage': STAGE")
                .replace("import deepspeed\n", "import deepspeed\nSTAGE = 3\n")
                .replace(
                    "engine, _, _, _ = deepspeed.initialize(model=net, config=config)",
                    "engine = deepspeed.initialize(model=net, config_params=config)[0]",
                )
            ),
            _ALONE,
        ),
    },
    silent_on={
        "`synced_gpus=True` keeps the ranks together": ScriptFacts(
            source=_ENGINE.replace("do_sample=True", "synced_gpus=True")
        ),
        "an engine of stage 2, where each rank has all parameters": ScriptFacts(
            source=_ENGINE.replace("'stage': 3", "'stage': 2")
        ),
        "transformers knows of ZeRO-3": ScriptFacts(
            source=_ENGINE.replace("engine,", "keep = HfDeepSpeedConfig(config)\nengine,")
        ),
        "another model generates": ScriptFacts(
            source=_ENGINE.replace("engine.module.generate", "teacher.generate")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
