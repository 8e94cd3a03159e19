"""The probe could not load in a worker, which is therefore seen only from outside.

## Why it matters
Without the probe there is no roll call for this worker and no step count, and stacks come from py-spy
alone. Either the interpreter was started with `-I`, `-S` or `-E`, or the command resets its environment, or
the program is not Python, or its sitecustomize was replaced.

## What to do
Start the interpreter without those flags, or let the wrapper pass on PYTHONPATH and ALLABOARD_*. Training
is not affected.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import BOX, Certainty, Claim, Evidence, JobView, Phase, Severity
from allaboard.facts.samples import arrived_member, coming_member, gathering_job

PROBE_START_GRACE_S = 5.0
"""How long an interpreter may take to start on a busy machine before its probe counts as absent (s)."""


def check(view: JobView) -> Iterator[Claim]:
    # Under another launcher, the one process that we started need not be Python.
    for member in view.alive if view.launched > 0 else ():
        if member.probed or member.has_no_part or BOX in member.notes:
            continue
        if member.wraps_python:
            continue  # the process below it has the probe, and is seen from its framework's init on
        if view.now - max(view.launched_at, member.started_at) >= PROBE_START_GRACE_S:
            yield Claim(
                summary=f"probe absent in {member.who.name}: evidence from outside only",
                who=(member.who,),
                evidence=(Evidence(f"no black box after {PROBE_START_GRACE_S:g} s", "agent"),),
                fix="start it without -I, -S or -E, and let PYTHONPATH through",
                severity=Severity.INFO,
                certainty=Certainty.CERTAIN,
            )


_WITHOUT_PROBE = coming_member(1, probed=False, phase=Phase.LAUNCHED)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker started with `python -I`": (
            gathering_job(arrived_member(0), _WITHOUT_PROBE),
            "probe absent in worker 1: evidence from outside only",
        )
    },
    silent_on={
        "the worker started three seconds ago": gathering_job(
            arrived_member(0), _WITHOUT_PROBE, now=3.0
        ),
        "the worker was started again two seconds ago": gathering_job(
            arrived_member(0),
            coming_member(1, probed=False, phase=Phase.LAUNCHED, started_at=98.0),
            now=100.0,
        ),
        "the worker is timeout(1), and Python runs below it": gathering_job(
            arrived_member(0),
            coming_member(1, probed=False, phase=Phase.LAUNCHED, wraps_python=True),
        ),
        "another launcher started the worker": gathering_job(_WITHOUT_PROBE, launched=0),
        "the worker has a black box, which cannot be read": gathering_job(
            arrived_member(0),
            coming_member(1, probed=False, phase=Phase.LAUNCHED, notes={BOX: "it is torn"}),
        ),
    },
    drill=("probe-absent",),
)
