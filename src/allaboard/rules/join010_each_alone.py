"""Processes that were started to train together train independently.

## Why it matters
Nothing fails. Every process trains a whole model on its own data, the exit code is 0, and the saved
checkpoint is the work of one of them. Without CUDA, accelerate and Hugging Face's Trainer do this silently.
So does a script under any launcher that never calls a distributed init, or that catches the exception it
raises.

## What to do
With accelerate on CPUs, use `Accelerator(cpu=True)`, or `use_cpu=True` in TrainingArguments. Otherwise call
the framework's own init (`dist.init_process_group(...)`, a strategy, `jax.distributed.initialize()`). If the
processes are meant to be independent, start each one separately.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Severity, Stage
from allaboard.facts.samples import declared, gathering, held, job, member

NOTE = "accelerate alone"
"""Note of the probe if accelerate counts one process although the launcher started more."""
FAILED = "init failed"
"""Note of the probe if the framework's init raised: the exception, and where init was called."""
STEPS = 20
"""Steps that each process has made: a process that joins a group does so before its first step."""


def check(view: JobView) -> Iterator[Claim]:
    people = [m for m in view.members if not m.launcher and m.step]
    alone = [m for m in people if NOTE in m.notes]
    refused = [m for m in people if FAILED in m.notes and m.declared is None and m.alive]
    everybody = view.launched > 1 and len(people) == view.launched
    if alone:  # it may have joined a group, but does not use it
        yield _claim(alone, Certainty.CERTAIN, _counted(alone[0]), CPU)
    elif refused and view.launched > 1:
        for one in refused:
            yield _refused(view, one)
    elif any(_joined(m) for m in view.members):
        return  # JOIN001 and JOIN002 report the others
    elif everybody and all(m.step >= STEPS for m in people):
        said = f"{people[0].step} steps without a call of init"
        yield _claim(
            people, Certainty.LIKELY, Evidence(said, f"worker {people[0].who.index}"), INIT
        )


CPU = "Accelerator(cpu=True), or use_cpu=True in TrainingArguments, if there is no GPU"
INIT = 'call the framework\'s init before training, e.g. dist.init_process_group("gloo")'


def _joined(one: Member) -> bool:
    return one.declared is not None or one.phase in (Phase.ARRIVED, Phase.JOINING)


def _counted(one: Member) -> Evidence:
    return Evidence(
        f"accelerate counts 1 process, {one.notes[NOTE]}", f"PartialState of pid {one.who.pid}"
    )


def _refused(view: JobView, one: Member) -> Claim:
    waiting = sum(m.phase is Phase.ARRIVED for m in view.alive)
    told, _, place = one.notes[FAILED].rpartition(" at ")
    others = f"; {waiting} other{'s' * (waiting > 1)} wait{'s' * (waiting == 1)} for it in init"
    return Claim(
        summary=f"{one.who.name} trains alone: its init failed, and it went on"
        + (others if waiting else ""),
        who=(one.who,),
        evidence=(
            Evidence(told, place),
            Evidence(f"{one.step} step{'s' * (one.step > 1)} since", "black box"),
        ),
        fix=f"do not catch the exception at {place}; fix its cause",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=one.step_at,
    )


def _claim(alone: list[Member], certainty: Certainty, said: Evidence, fix: str) -> Claim:
    many = len(alone) > 1
    ranks = ", ".join(str(m.who.rank if m.who.rank >= 0 else m.who.index) for m in alone[:8])
    return Claim(
        summary=f"{len(alone)} processes train independently: none uses a process group"
        if many
        else f"rank {ranks} trains alone, although it was started as one of several",
        who=tuple(m.who for m in alone),
        evidence=(said,),
        fix=fix,
        severity=Severity.WARNING,
        certainty=certainty,
        since=min(m.step_at for m in alone),
    )


def _single(rank: int, step: int = 40, **notes: str) -> Member:
    names = {"accelerate alone": notes["told"]} if "told" in notes else {}
    return member(rank, declared=None, round=0, ops=0, step=step, notes=names)


_RAISED = "RuntimeError: initialize() must be called before any JAX calls at /home/u/train.py:9"


def _refuses(rank: int, step: int = 40) -> Member:
    return member(rank, declared=None, round=0, ops=0, step=step, notes={FAILED: _RAISED})


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("step",),
    fires_on={
        "accelerate without a GPU": (
            job(_single(0, told="WORLD_SIZE=2"), _single(1, told="WORLD_SIZE=2"), launched=2),
            "2 processes train independently: none uses a process group",
        ),
        "accelerate joined a group, and does not use it": (
            job(*(member(i, notes={NOTE: "WORLD_SIZE=3"}) for i in range(3))),
            "3 processes train independently: none uses a process group",
        ),
        "init failed on one of them, which went on": (
            gathering(held(0, 2), _refuses(1), launched=2),
            "worker 1 trains alone: its init failed, and it went on; 1 other waits for it in init",
        ),
        "one host's part of it": (
            job(_single(3, told="WORLD_SIZE=4"), launched=1, joined=True),
            "rank 3 trains alone, although it was started as one of several",
        ),
        "no init is called": (
            job(_single(0), _single(1), _single(2)),
            "3 processes train independently: none uses a process group",
        ),
    },
    silent_on={
        "init failed, and it may try again": gathering(held(0, 2), _refuses(1, 0), launched=2),
        "init failed, and worked the second time": job(
            member(0), member(1, notes={FAILED: _RAISED}), launched=2
        ),
        "init failed where one alone is meant": job(_refuses(0), launched=1),
        "all have joined": job(member(0), member(1), member(2)),
        "it has only begun": job(_single(0, 3), _single(1, 3), _single(2, 3)),
        "one of them has joined": job(member(0), _single(1), _single(2)),
        "one alone is meant": job(_single(0), launched=1),
        "a sweep under another launcher": job(_single(2), launched=1, joined=True),
        "worlds of one, and said so": job(
            *(member(i, declared=declared(i, 1)) for i in range(2)), launched=2
        ),
        "accelerate, before it trains": job(
            _single(0, 0, told="WORLD_SIZE=2"), _single(1, 0, told="WORLD_SIZE=2"), launched=2
        ),
    },
    since="0.1",
    drill=("accelerate-alone", "no-init"),
)
