"""A worker was killed by a signal.

## Why it matters
Its peers print `Connection closed by peer` with an address, or hang. None of them says that the peer was
killed, or by what. This finding separates the worker that was killed from those that failed because of it.

## What to do
- SIGKILL without an out-of-memory event: somebody or something (a scheduler, a limit, a person) killed it.
  Ask the batch system.
- SIGUSR1, SIGUSR2: a batch system sends them before it ends a job (Slurm's `--signal`), and allaboard passes
  on what it gets. Without a handler in the script they end it: `signal.signal(signal.SIGUSR1, save)`.
- An evaluator that is killed is told as a warning, and ends no job: the training goes on without it.
- SIGALRM, SIGVTALRM, SIGPROF: a timer of the program. Python takes its handlers away as it ends: stop the
  timer before (`signal.setitimer(signal.ITIMER_REAL, 0)`).
- SIGSEGV, SIGBUS, SIGILL, SIGABRT: native code crashed. Its last lines are in the log; `ulimit -c
  unlimited` leaves a core dump.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    CRASH_SIGNALS,
    USER_SIGNALS,
    FailureOrder,
    must_delay_report,
    order_failures,
)
from allaboard.analysis.member_names import first_names, names
from allaboard.analysis.parameter_servers.parameter_servers import SERVER_JOBS, trainers
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.samples import ended, evaluator, job, member, waiting
from allaboard.facts.signal_name import signal_name

TIMERS: dict[int, str] = {
    signal.SIGALRM: "signal.alarm, signal.setitimer",
    signal.SIGVTALRM: "signal.setitimer",
    signal.SIGPROF: "signal.setitimer, a profiler",
}
"""Signals of a process's own timers, and what starts these; setitimer(2)."""


def check(view: JobView) -> Iterator[Claim]:
    found = order_failures(view)
    killed = [m for m in found.own_failures if _killed(m) and not _server(view, m)]
    told = [m for m in killed if _signal(m) in USER_SIGNALS and m not in found.evaluators]
    together = sorted(told, key=lambda m: m.who.rank)
    if together and not any(must_delay_report(view, m) for m in together):
        yield _unhandled(together, found)
    alone = [m for m in killed if m not in together and not must_delay_report(view, m)]
    for those in _told_in_one(alone) if view.ended else [[m] for m in alone]:
        yield soften_evaluator_claim(view, those[0], _claim(those, found))


def _told_in_one(killed: list[Member]) -> list[list[Member]]:
    """Those of which a launcher told in one line, as srun does of all tasks of a host, are together."""
    lines: dict[tuple[object, ...], list[Member]] = {}
    for one in killed:
        assert one.exit is not None
        said = one.exit.last_line
        lines.setdefault((said, _signal(one)) if said else (id(one),), []).append(one)
    return list(lines.values())


def _killed(one: Member) -> bool:
    end = one.exit
    return end is not None and end.signal is not None and not end.oom and one.raised is None


def _signal(one: Member) -> int | None:
    return one.exit.signal if one.exit is not None else None


def _unhandled(those: list[Member], found: FailureOrder) -> Claim:
    """Who was told something by a signal, and did not wait for it."""
    first = those[0]
    assert first.exit is not None and first.exit.signal is not None
    name = signal_name(first.exit.signal)
    plural = len(those) > 1
    return Claim(
        summary=f"{names(those)} {'were' if plural else 'was'} killed by {name}, for which the script has "
        "no handler",
        who=tuple(m.who for m in those),
        evidence=(
            Evidence(f"killed by {name} in phase {first.phase.name.lower()}", "wait status"),
            *found.consequence_evidence(first),
        ),
        fix=f"signal.signal(signal.{name}, save)   # in the script; or see who sends it: Slurm's --signal, "
        "a person. allaboard passes on what it gets",
        since=first.exit.at,
    )


def _server(view: JobView, one: Member) -> bool:
    """Whether PS001 tells it, with those who wait for it."""
    return one.who.job in SERVER_JOBS and one.phase > Phase.ARRIVED and bool(trainers(view))


def _claim(those: list[Member], found: FailureOrder) -> Claim:
    one = those[0]
    assert one.exit is not None and one.exit.signal is not None
    name = signal_name(one.exit.signal)
    evidence = [Evidence(f"killed by {name} in phase {one.phase.name.lower()}", "wait status")]
    if one.step:
        evidence.append(Evidence(f"its last step was {one.step}", "black box"))
    evidence += found.consequence_evidence(one)
    crashed = one.exit.signal in CRASH_SIGNALS
    if crashed and one.exit.last_line:
        evidence.append(Evidence(one.exit.last_line, one.log))
    if crashed:
        fix = f"read the end of {one.log}; ulimit -c unlimited for a core"
    elif one.exit.signal in TIMERS:
        fix = (
            f"most likely a timer of the program itself ({TIMERS[one.exit.signal]}): give it a handler, and "
            "stop it before the program's end, where Python has taken its handlers away"
        )
    else:
        fix = "no out-of-memory event was counted: find out who sends it (a scheduler, a limit, a person)"
    return Claim(
        summary=f"{first_names(those)} {'were' if len(those) > 1 else 'was'} killed by {name}",
        who=tuple(m.who for m in those),
        evidence=tuple(evidence),
        fix=fix,
        since=one.exit.at,
    )


_LOST = ("RuntimeError", "[gloo/pair.cc] Connection closed by peer [127.0.0.1]:18334")
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "kill -9, the others fell": (
            job(
                ended(0, at=95.3, raised=_LOST), ended(1, signal=9), ended(2, at=95.4, raised=_LOST)
            ),
            "worker 1 was killed by SIGKILL",
        ),
        "told all to save, and none waits for that": (
            job(ended(0, signal=10), ended(1, signal=10)),
            "worker 0, worker 1 were killed by SIGUSR1, for which the script has no handler",
        ),
        "crashed": (job(member(0), ended(1, signal=11)), "worker 1 was killed by SIGSEGV"),
        "an evaluator": (
            job(member(0), ended(1, signal=9, member={"who": evaluator(1)})),
            "evaluator 0 was killed by SIGKILL; the training goes on without it",
        ),
    },
    silent_on={
        "out of memory has its own rule": job(waiting(0), ended(1, signal=9, oom=True)),
        "we ended it": job(ended(0, signal=15, ours=True), ended(1, code=0)),
        "its agent was asked for the end": job(
            waiting(0), ended(1, signal=15, member={"interrupted": 94.9})
        ),
        "a survivor that its launcher ended": job(
            ended(0, at=97, signal=15), ended(1, raised=("ValueError", "x"))
        ),
    },
    since="0.1",
    drill=(
        "killed",
        "tf-killed",
        "ps-sync-killed",
        "restart-killed",
        "restart-tf2-worker",
        "first-killed",
    ),
    relations=Relations(begins_failure=True),
)
