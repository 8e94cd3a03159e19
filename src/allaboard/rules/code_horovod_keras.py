"""Mistakes in what Keras gets under Horovod: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_AVERAGE = "MetricAverageCallback"
_DECIDES = ("ReduceLROnPlateau", "EarlyStopping")
"""Callbacks of Keras that act on a metric."""
_SHARES = re.compile(r"\.shard\(|\[\s*(?:hvd\.)?rank\(\)\s*:|\[\s*rank\s*::|hvd\.rank\(\)\s*::")
"""Matches what gives each process data of its own."""


def _stops_by_own_metric(facts: ScriptFacts) -> Iterator[Claim]:
    if "horovod" not in facts.source or "EarlyStopping" not in facts.source:
        return
    if _AVERAGE in facts.source or "allreduce" in facts.source:
        return
    script = read_script(facts)
    for name, call in script.calls:
        if name.rpartition(".")[2] != "EarlyStopping" or script.rank_condition(call) is not None:
            continue
        monitor = call_argument(call, "monitor", 0)
        watched = str(monitor.value) if isinstance(monitor, ast.Constant) else "val_loss"
        if watched.startswith("val") and not _SHARES.search(facts.source):
            continue  # of the same data, all processes have the same loss
        yield Claim(
            summary=f"each process stops by its own {watched}, which nothing averages: the first that stops "
            "leaves the others in their next allreduce",
            evidence=(script.evidence_for(call),),
            fix="hvd.callbacks.MetricAverageCallback(),   # in the list, before EarlyStopping",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _validates_on_some(facts: ScriptFacts) -> Iterator[Claim]:
    if "horovod" not in facts.source or _AVERAGE not in facts.source:
        return
    script = read_script(facts)
    for call in script.method_calls("fit", "fit_generator"):
        given = call_argument(call, "validation_data")
        origin = _given_to_some(script, given) if given is not None else None
        if origin is None or script.rank_condition(call) is not None:
            continue
        yield Claim(
            summary="only some processes get validation_data, and MetricAverageCallback averages val_loss "
            "over all: they wait for the others in it",
            evidence=(script.evidence_for(call), script.evidence_for(origin)),
            fix="validation_data=…   # on every process; its own share is enough",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _given_to_some(script: Script, given: ast.expr) -> ast.AST | None:
    """Return where the rank decides whether an argument is None; None if it does not."""
    if isinstance(given, ast.IfExp):
        is_none = [
            isinstance(v, ast.Constant) and v.value is None for v in (given.body, given.orelse)
        ]
        return given if any(is_none) and script.depends_on_rank(given.test) else None
    if not isinstance(given, ast.Name):
        return None
    values = [v for v in script.ranks.bound_values(given) if v is not None]
    if len(values) == 1 and isinstance(values[0], ast.IfExp):
        return _given_to_some(script, values[0])
    absent = [v for v in values if isinstance(v, ast.Constant) and v.value is None]
    present = [v for v in values if v not in absent and script.rank_condition(v) is not None]
    return present[0] if absent and present else None


def _averaged_too_late(facts: ScriptFacts) -> Iterator[Claim]:
    if "horovod" not in facts.source or _AVERAGE not in facts.source:
        return
    script = read_script(facts)
    for listed in [n for n in script.parents if isinstance(n, ast.List)]:
        names = [
            ast.unparse(e.func).rpartition(".")[2] if isinstance(e, ast.Call) else ""
            for e in listed.elts
        ]
        if _AVERAGE not in names:
            continue
        early = next((n for n in names[: names.index(_AVERAGE)] if n in _DECIDES), "")
        if early:
            decider = listed.elts[names.index(early)]
            yield Claim(
                summary=f"{early} comes before MetricAverageCallback: it decides by the process's own "
                "metric, and the processes decide differently",
                evidence=(
                    script.evidence_for(decider),
                    script.evidence_for(listed.elts[names.index(_AVERAGE)]),
                ),
                fix=f"{ast.unparse(decider)}   # behind MetricAverageCallback",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(decider),
            )


def _clipped_before_average(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "horovod.torch" not in source or "clip_grad_" not in source:
        return
    if "DistributedOptimizer" not in source or "synchronize" in source:
        return
    script = read_script(facts)
    wraps = script.calls_of("horovod.torch.DistributedOptimizer")
    clips = script.calls_of(*(f"torch.nn.utils.clip_grad_{kind}_" for kind in ("norm", "value")))
    if not wraps or not clips or not script.method_calls("step"):
        return
    yield Claim(
        summary="each process clips its own gradients while Horovod still averages them: the norm is not "
        "that of the step",
        evidence=(script.evidence_for(clips[0]), script.evidence_for(wraps[0])),
        fix="optimizer.synchronize()   # before it; then `with optimizer.skip_synchronize():` for the step",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(clips[0]),
    )


_HEAD = "import horovod.tensorflow.keras as hvd\nfrom tensorflow import keras\nhvd.init()\n"
_STOPS = (
    _HEAD + "val = data.shard(hvd.size(), hvd.rank())\n"
    "calls = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), keras.callbacks.EarlyStopping()]\n"
    "model.fit(x, validation_data=val, callbacks=calls)\n"
)
_SOME = (
    _HEAD + "calls = [hvd.callbacks.MetricAverageCallback()]\n"
    "if hvd.rank() == 0:\n    val = load()\nelse:\n    val = None\n"
    "model.fit(x, validation_data=val, callbacks=calls)\n"
)
_LATE = (
    _HEAD + "model.fit(x, callbacks=[keras.callbacks.ReduceLROnPlateau(), "
    "hvd.callbacks.MetricAverageCallback()])\n"
)
_CLIPPED = (
    "import torch\nimport horovod.torch as hvd\nhvd.init()\n"
    "optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))\n"
    "for x in data:\n    model(x).sum().backward()\n    SYNC\n"
    "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n"
)

RULES = {
    "code065_stops_by_own_metric": script_rule(
        page="""Under Horovod, each process stops early by a metric of its own.

## Why it matters
Keras's EarlyStopping looks at the metrics of its own process. If each validates on its own share of the data,
one process stops in an epoch in which the others go on: they wait for it in their next allreduce.

## What to do
Put `hvd.callbacks.MetricAverageCallback()` into the list of callbacks, before EarlyStopping.
""",
        check=_stops_by_own_metric,
        fires_on={
            "EarlyStopping, and each process validates on its own share": (
                _STOPS,
                "each process stops by its own val_loss, which nothing averages: the first that stops leaves "
                "the others in their next allreduce",
            )
        },
        silent_on={
            "EarlyStopping together with MetricAverageCallback": _STOPS.replace(
                "calls = [", "calls = [hvd.callbacks.MetricAverageCallback(), "
            ),
            "EarlyStopping, and all processes validate on the same data": _STOPS.replace(
                ".shard(hvd.size(), hvd.rank())", ""
            ),
            "a script without Horovod": _STOPS.replace("horovod", "other"),
        },
    ),
    "code066_validates_on_some": script_rule(
        page="""Under Horovod, only some processes validate, and all of them average their metrics.

## Why it matters
MetricAverageCallback averages each metric over all processes at the end of an epoch. A process without
validation data has no `val_loss`: the others wait for it there.

## What to do
Give every process validation data, at best a share of its own.
""",
        check=_validates_on_some,
        fires_on={
            "only rank 0 loads validation data": (
                _SOME,
                "only some processes get validation_data, and MetricAverageCallback averages val_loss over "
                "all: they wait for the others in it",
            ),
            "only rank 0 gets validation data, by a conditional expression": (
                _SOME.replace("=val,", "=load() if hvd.rank() == 0 else None,"),
                "only some processes get validation_data, and MetricAverageCallback averages val_loss over "
                "all: they wait for the others in it",
            ),
        },
        silent_on={
            "all processes load validation data": _SOME.replace("val = None", "val = load()"),
            "an option decides whether there is validation data": _SOME.replace(
                "hvd.rank() == 0", "args.validate"
            ),
            "only rank 0 validates, and no callback averages over all": _SOME.replace(
                "MetricAverageCallback", "Other"
            ),
        },
    ),
    "code083_averaged_too_late": script_rule(
        page="""Under Horovod, a callback acts on a metric before MetricAverageCallback has averaged it.

## Why it matters
Keras runs callbacks in the order of their list. A ReduceLROnPlateau or an EarlyStopping in front of
MetricAverageCallback sees the metric of its own process: the learning rates part, or one process stops
while the others wait for it.

## What to do
Put MetricAverageCallback in front of them, right behind BroadcastGlobalVariablesCallback.
""",
        check=_averaged_too_late,
        fires_on={
            "ReduceLROnPlateau stands in front of MetricAverageCallback": (
                _LATE,
                "ReduceLROnPlateau comes before MetricAverageCallback: it decides by the process's own "
                "metric, and the processes decide differently",
            )
        },
        silent_on={
            "MetricAverageCallback stands in front": _HEAD
            + "model.fit(x, callbacks=[hvd.callbacks.MetricAverageCallback(), "
            "keras.callbacks.ReduceLROnPlateau()])\n",
            "a callback that decides nothing stands in front": _LATE.replace(
                "ReduceLROnPlateau", "TensorBoard"
            ),
        },
    ),
    "code084_clipped_before_average": script_rule(
        page="""Under Horovod, gradients are clipped while they are still being averaged.

## Why it matters
`hvd.DistributedOptimizer` averages in the background and waits in `step()`. A clip before it sees
gradients of the own process, or half-averaged ones, and clips by another norm than that of the step.

## What to do
`optimizer.synchronize()`, then clip, then `with optimizer.skip_synchronize(): optimizer.step()`.
""",
        check=_clipped_before_average,
        fires_on={
            "a clip between backward and step": (
                _CLIPPED.replace("SYNC", "pass"),
                "each process clips its own gradients while Horovod still averages them: the norm is not "
                "that of the step",
            )
        },
        silent_on={
            "the optimizer is synchronised first": _CLIPPED.replace(
                "SYNC", "optimizer.synchronize()"
            ),
            "gradients are averaged by the script": _CLIPPED.replace("SYNC", "pass").replace(
                "hvd.DistributedOptimizer", ""
            ),
        },
    ),
}
