"""Objects and attributes that only some ranks or some loaders have: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_LOADER = "torch.utils.data.DataLoader"
_ASKS_RUN = re.compile(r"wandb\.run\b|WANDB_MODE|mode\s*=\s*['\"]disabled|rank_zero_only")
"""Matches scripts that may give the other ranks a run, or ask whether there is one."""
_JOB_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TF_CONFIG")


def _logs_without_run(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "wandb.init" not in source or "wandb.log(" not in source or _ASKS_RUN.search(source):
        return
    script = read_script(facts)
    if facts.is_piece or not script.is_distributed:
        return
    starts = script.calls_of("wandb.init")
    condition = script.rank_condition(starts[0]) if len(starts) == 1 else None
    if condition is None:
        return
    for call in script.calls_of("wandb.log"):
        function = script.enclosing_function(call)
        if function is not script.enclosing_function(starts[0]):
            continue  # who calls that function may be rank 0 alone
        if script.rank_condition(call) is not None or any(
            isinstance(a, (ast.If, ast.Try)) for a in script.ancestors(call)
        ):
            continue
        yield Claim(
            summary="every rank comes to this wandb.log, and only some have called wandb.init: the others "
            'end with "You must call wandb.init() before wandb.log()"',
            evidence=(script.evidence_for(call), script.evidence_for(starts[0])),
            fix=f"if {ast.unparse(condition.test)}: {script.source_line(call)}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _number_in_environment(facts: ScriptFacts) -> Iterator[Claim]:
    if "environ" not in facts.source:
        return
    script = read_script(facts)
    for node in script.parents:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Subscript) or not isinstance(node, ast.Assign):
            continue
        variable = target.slice.value if isinstance(target.slice, ast.Constant) else None
        is_environ = ast.unparse(target.value) in ("os.environ", "environ")
        value = node.value.value if isinstance(node.value, ast.Constant) else ""
        if not is_environ or variable not in _JOB_VARIABLES or type(value) is not int:
            continue
        yield Claim(
            summary=f"{variable} gets a number, and the environment takes text alone: this line ends with "
            '"TypeError: str expected, not int"',
            evidence=(script.evidence_for(node),),
            fix=f'os.environ["{variable}"] = "{value!r}"',
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


def _no_such_method(facts: ScriptFacts) -> Iterator[Claim]:
    if ".sampler.set_epoch" not in facts.source or facts.is_piece:
        return
    script = read_script(facts)
    for call in script.method_calls("set_epoch"):
        owner = ast.unparse(call.func).removesuffix(".set_epoch")
        loader, _, attribute = owner.rpartition(".")
        making = _only_loader(script, loader) if attribute == "sampler" else None
        if making is None or any(isinstance(a, (ast.If, ast.Try)) for a in script.ancestors(call)):
            continue
        yield Claim(
            summary=f"{loader} has no distributed sampler, and that of a plain DataLoader has no set_epoch: "
            "this ends with an AttributeError",
            evidence=(script.evidence_for(call), script.evidence_for(making)),
            fix=f"remove this line; or {ast.unparse(making.func)}(…, sampler=DistributedSampler(…))",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _only_loader(script: Script, name: str) -> ast.Call | None:
    """Return the call that makes a loader without a sampler; None if it may be another one."""
    values = [
        n.value
        for n in script.parents
        if isinstance(n, ast.Assign) and name in [ast.unparse(t) for t in n.targets]
    ]
    making = values[0] if len(values) == 1 else None
    if not isinstance(making, ast.Call) or script.call_name(making.func) != _LOADER:
        return None
    has_sampler = any(k.arg in ("sampler", "batch_sampler", None) for k in making.keywords)
    is_replaced = f"{name} =" in "\n".join(script.lines).replace(f"{name} = ", "", 1)
    return None if has_sampler or is_replaced or call_argument(making, "sampler", 3) else making


_TRACKED = """import wandb
import torch.distributed as dist
dist.init_process_group("nccl")
if dist.get_rank() == 0:
    wandb.init(project="a")
for x in loader:
    train(x)
    wandb.log({"loss": 1})
"""
_PORT = """import os
import torch.distributed as dist
os.environ["MASTER_PORT"] = 29500
dist.init_process_group("nccl")
"""
_VALIDATED = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("nccl")
val = DataLoader(data, batch_size=8)
for epoch in range(3):
    val.sampler.set_epoch(epoch)
    validate(val)
"""

RULES = {
    "code124_logs_without_run": script_rule(
        page="""Every rank logs to wandb, and only some have started a run.

## Why it matters
`wandb.log` without `wandb.init` in the same process raises "You must call wandb.init() before wandb.log()":
all ranks but one end at their first log, and that one waits for them in its next collective.

## What to do
Put the log under the condition of the init, or ask `if wandb.run is not None`.
""",
        check=_logs_without_run,
        fires_on={
            "rank 0 starts the run, all log": (
                _TRACKED,
                "every rank comes to this wandb.log, and only some have called wandb.init: the others end "
                'with "You must call wandb.init() before wandb.log()"',
            )
        },
        silent_on={
            "rank 0 alone logs": _TRACKED.replace(
                "    wandb.log", "    if dist.get_rank() == 0: wandb.log"
            ),
            "every rank has a run": _TRACKED.replace("if dist.get_rank() == 0:\n    ", ""),
            "the other ranks have a disabled one": _TRACKED.replace(
                'project="a")', 'project="a")\nelse:\n    wandb.init(mode="disabled")'
            ),
            "a function that rank 0 may call": _TRACKED.replace(
                "for x in loader:\n", "def run(loader):\n"
            ),
        },
    ),
    "code126_number_in_environment": script_rule(
        page="""A variable of the job is set to a number.

## Why it matters
`os.environ` takes text alone. The line ends with "TypeError: str expected, not int", often only where a
default is used that was never tried.

## What to do
Write the number as text: `os.environ["MASTER_PORT"] = "29500"`.
""",
        check=_number_in_environment,
        fires_on={
            "the port as a number": (
                _PORT,
                "MASTER_PORT gets a number, and the environment takes text alone: this line ends with "
                '"TypeError: str expected, not int"',
            )
        },
        silent_on={
            "the port as text": _PORT.replace("29500", '"29500"'),
            "a number made text": _PORT.replace("29500", "str(29500)"),
            "a dictionary of the script": _PORT.replace("os.environ[", "settings["),
        },
    ),
    "code127_sampler_without_epochs": script_rule(
        page="""`set_epoch` is called on the sampler of a plain DataLoader.

## Why it matters
Only a DistributedSampler has `set_epoch`. The sampler that a DataLoader makes for itself has none, and the
line ends with an AttributeError, for a validation loader often only after the first epoch.

## What to do
Remove the call, or give the loader a DistributedSampler.
""",
        check=_no_such_method,
        fires_on={
            "the loader for validation": (
                _VALIDATED,
                "val has no distributed sampler, and that of a plain DataLoader has no set_epoch: this ends "
                "with an AttributeError",
            )
        },
        silent_on={
            "it has a distributed sampler": _VALIDATED.replace(
                "batch_size=8", "sampler=DistributedSampler(data)"
            ),
            "the library replaces the loader": _VALIDATED.replace(
                "for epoch", "val = prepare(val)\nfor epoch"
            ),
            "only where there is one": _VALIDATED.replace(
                "    val.sampler", "    if distributed: val.sampler"
            ),
        },
    ),
}
