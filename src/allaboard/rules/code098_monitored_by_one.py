"""Lightning watches a metric that only rank 0 has.

## Why it matters
`self.log(…, rank_zero_only=True)` gives the metric to rank 0 alone, and so does `self.log` under `if
self.global_rank == 0:`. EarlyStopping and ModelCheckpoint run
on all ranks and look for it there: the others end with an error, or decide otherwise than rank 0, and the
ranks part.

## What to do
`self.log("val_acc", value, sync_dist=True)`: all ranks then have the same mean.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import call_graph_of
from allaboard.formats.python.rank_conditions import differs_between_ranks
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_WATCHERS = re.compile(r"(?:.*\.)?(?:EarlyStopping|ModelCheckpoint|ReduceLROnPlateau)")

_ONE_DEVICE = re.compile(r"\b(?:devices|gpus)\s*=\s*(?:1|\[\d+\])\s*[,)]")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "monitor" not in facts.source or ".log(" not in facts.source:
        return
    if _ONE_DEVICE.search(facts.source) or ("log_dict(" in facts.source):
        return
    script = read_script(facts)
    watched = {
        _text(script, call_argument(c, "monitor")): c
        for n, c in script.calls
        if _WATCHERS.fullmatch(n)
    }
    logged_by_all = set()
    by_one: list[tuple[str, ast.Call, str]] = []
    for call in script.method_calls("log", "log_dict"):
        only = call_argument(call, "rank_zero_only")
        metric = _text(script, call_argument(call, "name", 0))
        if isinstance(only, ast.Constant) and only.value is True:
            by_one.append((metric, call, "on rank 0 alone"))
        elif (condition := _condition_on_rank(script, call)) is not None:
            by_one.append((metric, call, f"only where {script.reached_where(call, condition)}"))
        else:
            logged_by_all.add(metric)
    for metric, call, where in by_one:
        if not metric or metric not in watched or metric in logged_by_all:
            continue
        yield Claim(
            summary=f"{metric} is logged {where}, and a callback watches it on every rank",
            evidence=(script.evidence_for(call), script.evidence_for(watched[metric])),
            fix=f'self.log("{metric}", …, sync_dist=True)   # on all ranks, without rank_zero_only',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _condition_on_rank(script: Script, call: ast.Call) -> ast.If | None:
    """Return the condition on the rank around a log if it has no other branch; a log that meets the other
    ranks is another mistake."""
    condition, synced = script.rank_condition(call), call_argument(call, "sync_dist")
    if condition is None or condition.orelse or synced is not None:
        return None
    differs = differs_between_ranks(script, call_graph_of(script), condition.test)
    return condition if differs else None


def _text(script: Script, node: ast.expr | None) -> str:
    value = resolve(script, node) if node is not None else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


_WATCHED = (
    "import lightning as L\nfrom lightning.pytorch.callbacks import EarlyStopping\n"
    "class Net(L.LightningModule):\n    def validation_step(self, batch, i):\n"
    "        self.log('val_acc', score(batch), rank_zero_only=True)\n"
    "L.Trainer(devices=4, callbacks=[EarlyStopping(monitor='val_acc')]).fit(Net())\n"
)
_UNDER_RANK = _WATCHED.replace("EarlyStopping", "ModelCheckpoint").replace(
    "        self.log('val_acc', score(batch), rank_zero_only=True)",
    "        if self.trainer.is_global_zero:\n            self.log('val_acc', score(batch))",
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "EarlyStopping monitors a metric of rank 0": (
            ScriptFacts(source=_WATCHED),
            "val_acc is logged on rank 0 alone, and a callback watches it on every rank",
        ),
        "ModelCheckpoint monitors what is logged under a condition on the rank": (
            ScriptFacts(source=_UNDER_RANK),
            "val_acc is logged only where self.trainer.is_global_zero, and a callback watches it on every "
            "rank",
        ),
    },
    silent_on={
        "all ranks log the metric": ScriptFacts(
            source=_WATCHED.replace("rank_zero_only=True", "sync_dist=True")
        ),
        "a metric under a condition on the rank, and in its other branch": ScriptFacts(
            source=_UNDER_RANK.replace(
                "\nL.Tr", "\n        else:\n            self.log('val_acc', 0)\nL.Tr"
            )
        ),
        "another metric than the one that is watched": ScriptFacts(
            source=_UNDER_RANK.replace("self.log('val_acc'", "self.log('wall_time'")
        ),
        "a metric under a condition on the epoch": ScriptFacts(
            source=_UNDER_RANK.replace("trainer.is_global_zero", "current_epoch > 3")
        ),
        "a job of one device": ScriptFacts(source=_WATCHED.replace("devices=4", "devices=1")),
        "a dictionary of metrics is logged as well": ScriptFacts(
            source=_WATCHED.replace("L.Tr", "        self.log_dict({'val_acc': 1})\nL.Tr")
        ),
        "another metric is monitored": ScriptFacts(
            source=_WATCHED.replace("monitor='val_acc'", "monitor='val_loss'")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
