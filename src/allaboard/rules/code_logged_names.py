"""Names of collectives that are another one on each process: each rule reports one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import HOROVOD_COLLECTIVES, SYNCED_LOGS
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.steps.joint_steps import joint_steps_of
from allaboard.formats.python.steps.own_values import OwnValues


def _named_by_rank(script: Script) -> Iterator[Claim]:
    """Report a collective of Horovod whose name is another one on each process."""
    for called, call in script.calls:
        argument = call_argument(call, "name") if called in HOROVOD_COLLECTIVES else None
        if argument is None:
            continue
        value = resolve(script, argument)
        parts = [n for n in ast.walk(value) if isinstance(n, (ast.Call, ast.Name, ast.Attribute))]
        if any(script.ranks.rank_kind(p) == "number" for p in parts):
            yield Claim(
                summary="the name of this collective depends on the rank, and Horovod pairs collectives by "
                "their names: each process waits alone",
                evidence=(script.evidence_for(call),),
                fix="name='NAME'   # the same on every process",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _logged_by_own_name(facts: ScriptFacts) -> Iterator[Claim]:
    if "horovod" in facts.source and "name=" in facts.source:
        yield from _named_by_rank(read_script(facts))
    if "sync_dist" not in facts.source:
        return
    script = read_script(facts)
    own = OwnValues(script, joint_steps_of(script))
    for name, call in script.calls:
        if name not in SYNCED_LOGS or not call.args or not _is_synced(call):
            continue
        parts = [n.value for n in ast.walk(call.args[0]) if isinstance(n, ast.FormattedValue)]
        if isinstance(call.args[0], ast.JoinedStr) and any(
            own.kind(p) in ("batch", "loss") for p in parts
        ):
            yield Claim(
                summary="the name under which this is logged comes from the rank's own batch, and sync_dist "
                "reduces each name over all ranks: with other names they wait for each other, or mix values",
                evidence=(script.evidence_for(call),),
                fix="self.log(NAME, value, sync_dist=True)   # the same names on every rank, in each step",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _is_synced(call: ast.Call) -> bool:
    return any(
        k.arg == "sync_dist" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


_NAMED = (
    "import lightning as L\nclass M(L.LightningModule):\n    def training_step(self, batch, i):\n"
    "        loss = self.net(batch['x'])\n        self.log(NAME, loss, sync_dist=True)\n"
    "        return loss\n"
)
_NAMED_BY_RANK = (
    "import horovod.torch as hvd\nhvd.init()\nmean = hvd.allreduce(x, name=f'loss.{hvd.rank()}')\n"
)

RULES = {
    "code061_logged_by_own_name": script_rule(
        page="""A value is reduced over the ranks under a name that comes from the rank's own batch.

## Why it matters
Lightning reduces what is logged with `sync_dist=True` name by name. If the batches of two ranks are of
different datasets, the ranks log different names, and reduce them in calls that do not belong together: one
waits for ever, or a value is averaged with another one.

## What to do
Log the same names on every rank in each step, with a neutral value for those that a rank does not have.
""",
        check=_logged_by_own_name,
        fires_on={
            "the name of a Horovod allreduce has the rank in it": (
                _NAMED_BY_RANK,
                "the name of this collective depends on the rank, and Horovod pairs collectives by their "
                "names: each process waits alone",
            ),
            "the logged name contains the source of the batch": (
                _NAMED.replace("NAME", "f\"loss_{batch['source']}\""),
                "the name under which this is logged comes from the rank's own batch, and sync_dist reduces "
                "each name over all ranks: with other names they wait for each other, or mix values",
            ),
        },
        silent_on={
            "the name of a Horovod allreduce has the step in it": _NAMED_BY_RANK.replace(
                "hvd.rank()", "step"
            ),
            "one logged name for all batches": _NAMED.replace("NAME", "'loss'"),
            "the logged name contains the stage": _NAMED.replace("NAME", 'f"{self.stage}/loss"'),
            "the value is logged with `sync_dist=False`": _NAMED.replace(
                "NAME", "f\"loss_{batch['source']}\""
            ).replace(", sync_dist=True", ", sync_dist=False"),
        },
    ),
}
