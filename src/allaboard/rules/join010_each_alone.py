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
from allaboard.facts.outcome import Retry
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import (
    arrived_member,
    gathering_job,
    sample_declaration,
    sample_job,
    sample_member,
)

ALONE_NOTE = "accelerate alone"
"""Note of the probe if accelerate counts one process although the launcher started more."""
INIT_FAILED_NOTE = "init failed"
"""Note of the probe if the framework's init raised: the exception, and where init was called."""
MIN_STEPS = 20
"""Steps that each process has made: a process that joins a group does so before its first step."""


def check(view: JobView) -> Iterator[Claim]:
    training = [m for m in view.members if not m.launcher and m.step]
    alone = [m for m in training if ALONE_NOTE in m.notes]
    failed_init = [
        m for m in training if INIT_FAILED_NOTE in m.notes and m.declared is None and m.alive
    ]
    all_train = view.launched > 1 and len(training) == view.launched
    if alone:  # it may have joined a group, but does not use it
        yield _claim(alone, Certainty.CERTAIN, _accelerate_evidence(alone[0]), ACCELERATE_FIX)
    elif failed_init and view.launched > 1:
        for member in failed_init:
            yield _claim_failed_init(view, member)
    elif any(_has_joined(m) for m in view.members):
        return  # JOIN001 and JOIN002 report the others
    elif all_train and all(m.step >= MIN_STEPS for m in training):
        steps = f"{training[0].step} steps without a call of init"
        yield _claim(
            training, Certainty.LIKELY, Evidence(steps, f"worker {training[0].who.index}"), INIT_FIX
        )


ACCELERATE_FIX = "Accelerator(cpu=True), or use_cpu=True in TrainingArguments, if there is no GPU"
"""Advice if accelerate counts one process."""
INIT_FIX = 'call the framework\'s init before training, e.g. dist.init_process_group("gloo")'
"""Advice if no init was called."""


def _has_joined(member: Member) -> bool:
    return member.declared is not None or member.phase in (Phase.ARRIVED, Phase.JOINING)


def _accelerate_evidence(member: Member) -> Evidence:
    return Evidence(
        f"accelerate counts 1 process, {member.notes[ALONE_NOTE]}",
        f"PartialState of pid {member.who.pid}",
    )


def _claim_failed_init(view: JobView, member: Member) -> Claim:
    waiting = sum(m.phase is Phase.ARRIVED for m in view.alive)
    error, _, location = member.notes[INIT_FAILED_NOTE].rpartition(" at ")
    waiting_text = (
        f"; {waiting} other{'s' * (waiting > 1)} wait{'s' * (waiting == 1)} for it in init"
    )
    return Claim(
        summary=f"{member.who.name} trains alone: its init failed, but it continued"
        + (waiting_text if waiting else ""),
        who=(member.who,),
        evidence=(
            Evidence(error, location),
            Evidence(f"{member.step} step{'s' * (member.step > 1)} since", "black box"),
        ),
        fix=f"do not catch the exception at {location}; fix its cause",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=member.step_at,
    )


def _claim(alone: list[Member], certainty: Certainty, evidence: Evidence, fix: str) -> Claim:
    several = len(alone) > 1
    ranks = name_ranks([m.who.rank if m.who.rank >= 0 else m.who.index for m in alone])
    return Claim(
        summary=f"{len(alone)} processes train independently: none uses a process group"
        if several
        else f"{ranks} trains alone, although it was started as one of several",
        who=tuple(m.who for m in alone),
        evidence=(evidence,),
        fix=fix,
        severity=Severity.WARNING,
        certainty=certainty,
        since=min(m.step_at for m in alone),
    )


def _training_alone(rank: int, step: int = 40, **notes: str) -> Member:
    names = {"accelerate alone": notes["launched"]} if "launched" in notes else {}
    return sample_member(rank, declared=None, round=0, ops=0, step=step, notes=names)


_RAISED = "RuntimeError: initialize() must be called before any JAX calls at /home/u/train.py:9"


def _failed_init(rank: int, step: int = 40) -> Member:
    return sample_member(
        rank, declared=None, round=0, ops=0, step=step, notes={INIT_FAILED_NOTE: _RAISED}
    )


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("step",),
    fires_on={
        "accelerate without a GPU, under a launcher of two processes": (
            sample_job(
                _training_alone(0, launched="WORLD_SIZE=2"),
                _training_alone(1, launched="WORLD_SIZE=2"),
                launched=2,
            ),
            "2 processes train independently: none uses a process group",
        ),
        "accelerate counts one process although a group was joined": (
            sample_job(*(sample_member(i, notes={ALONE_NOTE: "WORLD_SIZE=3"}) for i in range(3))),
            "3 processes train independently: none uses a process group",
        ),
        "one process trains on after its init failed, and the other waits in init": (
            gathering_job(arrived_member(0, 2), _failed_init(1), launched=2),
            "worker 1 trains alone: its init failed, but it continued; 1 other waits for it in init",
        ),
        "one host of several, on which accelerate counts one process": (
            sample_job(_training_alone(3, launched="WORLD_SIZE=4"), launched=1, joined=True),
            "rank 3 trains alone, although it was started as one of several",
        ),
        "three processes train, and none calls an init": (
            sample_job(_training_alone(0), _training_alone(1), _training_alone(2)),
            "3 processes train independently: none uses a process group",
        ),
    },
    silent_on={
        "one process's init failed, and it has made no step yet": gathering_job(
            arrived_member(0, 2), _failed_init(1, 0), launched=2
        ),
        "one process's init failed, and worked the second time": sample_job(
            sample_member(0), sample_member(1, notes={INIT_FAILED_NOTE: _RAISED}), launched=2
        ),
        "the init failed in a job of one process": sample_job(_failed_init(0), launched=1),
        "all processes have joined": sample_job(
            sample_member(0), sample_member(1), sample_member(2)
        ),
        "no process has called an init, but each has made only three steps": sample_job(
            _training_alone(0, 3), _training_alone(1, 3), _training_alone(2, 3)
        ),
        "one of three processes has joined": sample_job(
            sample_member(0), _training_alone(1), _training_alone(2)
        ),
        "a job of one process": sample_job(_training_alone(0), launched=1),
        "one process of a sweep that another launcher started": sample_job(
            _training_alone(2), launched=1, joined=True
        ),
        "two processes that each declare world size 1": sample_job(
            *(sample_member(i, declared=sample_declaration(i, 1)) for i in range(2)), launched=2
        ),
        "accelerate counts one process, and no step has been made": sample_job(
            _training_alone(0, 0, launched="WORLD_SIZE=2"),
            _training_alone(1, 0, launched="WORLD_SIZE=2"),
            launched=2,
        ),
    },
    retry=Retry.NEVER,
    drill=("accelerate-alone", "no-init"),
)
