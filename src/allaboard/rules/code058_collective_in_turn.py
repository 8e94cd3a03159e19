"""A collective is called where the ranks go in turn.

## Why it matters
`with accelerator.main_process_first():` and similar blocks let rank 0 run the block alone, while the others
wait at its beginning for rank 0 to leave it. A collective inside waits for all ranks: rank 0 waits for the
others in it, and they wait for rank 0. Under DeepSpeed's ZeRO-3, `from_pretrained` is such a call: it deals
out the parameters to the ranks as it makes them.

## What to do
Leave inside only what rank 0 is to do before the others: a download, a cache. Call the collective after it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.call_graph import CallGraph, call_graph_of
from allaboard.formats.python.collective_calls import (
    COLLECTIVE_CALLS,
    enters_collective,
    is_limited_to_group,
    meets_other_ranks,
    shards_parameters,
)
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_IN_TURN = (
    "main_process_first",
    "local_main_process_first",
    "torch_distributed_zero_first",
    "rank_zero_first",
    "zero_first",
)
"""Contexts of accelerate, transformers and others whose body rank 0 runs before the others."""
_MODEL = re.compile(r"\w*Model(?:For\w+)?\.from_(?:pretrained|config)|\w+For\w+\.from_pretrained")
"""Matches the calls of transformers that make a model."""
_PREPARE = "accelerate.Accelerator().prepare"


def _in_turn(facts: ScriptFacts) -> Iterator[Claim]:
    if "_first" not in facts.source:
        return
    script = read_script(facts)
    reach = call_graph_of(script)
    for block in [n for n in script.parents if isinstance(n, ast.With)]:
        context = next(filter(None, map(_context_name, block.items)), "")
        calls = [n for s in block.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        for call in calls if context else ():
            entered = _entered(script, reach, call)
            if not entered or script.rank_condition(call) is not None:
                continue
            yield Claim(
                summary=f"{entered} waits for all ranks, and {context} lets rank 0 come to it alone: the "
                "others wait for rank 0 to leave the block",
                evidence=(script.evidence_for(call), script.evidence_for(block)),
                fix=f"{script.source_line(call)}   # after the with of line {block.lineno}",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            break


def _context_name(item: ast.withitem) -> str:
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    name = ast.unparse(called).rpartition(".")[2] if called is not None else ""
    return name if name in _IN_TURN else ""


def _entered(script: Script, reach: CallGraph, call: ast.Call) -> str:
    """Return what a call enters that waits for all ranks; "" if nothing certainly does."""
    name = script.call_name(call.func)
    if name == _PREPARE:
        return "prepare"
    if shards_parameters(script) and _MODEL.search(ast.unparse(call.func)):
        return f"{ast.unparse(call.func)} under ZeRO-3"
    direct = enters_collective(name, call)
    entered = [(name, call)] if direct else reach.certain_calls(call, COLLECTIVE_CALLS)
    for entered_name, inner in entered:
        if meets_other_ranks(entered_name, script) and not is_limited_to_group(entered_name, inner):
            short = entered_name.rpartition(".")[2]
            return short if direct else f"{short} in line {inner.lineno}"
    return ""


_HEAD = "from accelerate import Accelerator, DeepSpeedPlugin\nfrom transformers import AutoModel\n"
_ZERO_3 = (
    _HEAD
    + "a = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))\nwith a.main_process_first():\n"
)
_WAITS = (
    ", and main_process_first lets rank 0 come to it alone: the others wait for rank 0 to leave the "
    "block"
)

RULE = script_rule(
    page="",
    check=_in_turn,
    fires_on={
        "a model is loaded under ZeRO-3 in a `main_process_first` block": (
            _ZERO_3 + "    model = AutoModel.from_pretrained(name)\n",
            f"AutoModel.from_pretrained under ZeRO-3 waits for all ranks{_WAITS}",
        ),
        "`wait_for_everyone` in a `main_process_first` block": (
            _HEAD + "a = Accelerator()\nwith a.main_process_first():\n    a.wait_for_everyone()\n",
            f"wait_for_everyone waits for all ranks{_WAITS}",
        ),
        "a barrier in a function that the block calls": (
            _HEAD
            + "a = Accelerator()\ndef build():\n    data = load()\n    a.wait_for_everyone()\n"
            "with a.main_process_first():\n    build()\n",
            f"wait_for_everyone in line 6 waits for all ranks{_WAITS}",
        ),
        "`accelerator.prepare` in a `main_process_first` block": (
            _HEAD + "a = Accelerator()\nwith a.main_process_first():\n    m = a.prepare(m)\n",
            f"prepare waits for all ranks{_WAITS}",
        ),
    },
    silent_on={
        "a dataset is loaded and mapped in the block": _ZERO_3
        + "    data = load_dataset(name).map(f)\n",
        "a tokenizer is loaded in the block": _ZERO_3
        + "    t = AutoTokenizer.from_pretrained(name)\n",
        "a model is loaded under ZeRO-2, which shards no parameters while loading": _ZERO_3.replace(
            "zero_stage=3", "zero_stage=2"
        )
        + "    model = AutoModel.from_pretrained(name)\n",
        "the model is loaded after the block": _ZERO_3
        + "    download(name)\nmodel = AutoModel.from_pretrained(name)\n",
        "a function is defined in the block, and the barrier comes after the block": _ZERO_3
        + "    def f():\n        pass\na.wait_for_everyone()\n",
    },
)
