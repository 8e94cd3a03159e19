"""Lightning watches a metric that only rank 0 has.

## Why it matters
`self.log(…, rank_zero_only=True)` gives the metric to rank 0 alone. EarlyStopping and ModelCheckpoint run
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
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_WATCHERS = re.compile(r"(?:.*\.)?(?:EarlyStopping|ModelCheckpoint|ReduceLROnPlateau)")

_ONE_DEVICE = re.compile(r"\b(?:devices|gpus)\s*=\s*(?:1|\[\d+\])\s*[,)]")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "rank_zero_only" not in facts.source or "monitor" not in facts.source:
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
    by_one = []
    for call in script.method_calls("log", "log_dict"):
        only = call_argument(call, "rank_zero_only")
        metric = _text(script, call_argument(call, "name", 0))
        if isinstance(only, ast.Constant) and only.value is True:
            by_one.append((metric, call))
        else:
            logged_by_all.add(metric)
    for metric, call in by_one:
        if not metric or metric not in watched or metric in logged_by_all:
            continue
        yield Claim(
            summary=f"{metric} is logged on rank 0 alone, and a callback watches it on every rank",
            evidence=(script.evidence_for(call), script.evidence_for(watched[metric])),
            fix=f'self.log("{metric}", …, sync_dist=True)   # without rank_zero_only',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _text(script: Script, node: ast.expr | None) -> str:
    value = resolve(script, node) if node is not None else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


_WATCHED = (
    "import lightning as L\nfrom lightning.pytorch.callbacks import EarlyStopping\n"
    "class Net(L.LightningModule):\n    def validation_step(self, batch, i):\n"
    "        self.log('val_acc', score(batch), rank_zero_only=True)\n"
    "L.Trainer(devices=4, callbacks=[EarlyStopping(monitor='val_acc')]).fit(Net())\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "EarlyStopping monitors a metric of rank 0": (
            ScriptFacts(source=_WATCHED),
            "val_acc is logged on rank 0 alone, and a callback watches it on every rank",
        )
    },
    silent_on={
        "all ranks log the metric": ScriptFacts(
            source=_WATCHED.replace("rank_zero_only=True", "sync_dist=True")
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
