"""A worker was killed by a signal.

## Why it matters
Its peers print `Connection closed by peer` with an address, or hang. None of them reports that the peer was
killed, or by what. This finding separates the worker that was killed from those that failed as a consequence.

## What to do
- SIGKILL without an out-of-memory event: a scheduler, a limit or a person killed it. Ask the batch system.
- SIGUSR1, SIGUSR2: a batch system sends them before it ends a job (Slurm's `--signal`), and allaboard
  forwards the signals that it receives. Without a handler, the signal ends the script:
  `signal.signal(signal.SIGUSR1, save)`.
- A killed evaluator is a warning and does not end the job: the training goes on without it.
- SIGALRM, SIGVTALRM, SIGPROF: a timer of the program. Python removes its handlers when it exits: stop the
  timer before that (`signal.setitimer(signal.ITIMER_REAL, 0)`).
- SIGSEGV, SIGBUS, SIGILL, SIGABRT: native code crashed. Its last lines are in the log; `ulimit -c
  unlimited` leaves a core dump.
- SIGABRT with gloo's `nfds != -1`: the process closed all of its descriptors (`os.closerange`), and with them
  its connections. Its peers fail too, often earlier: they are not the cause.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from allaboard.analysis.failures.closed_descriptors import has_closed_its_connections
from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    CRASH_SIGNALS,
    USER_SIGNALS,
    FailureOrder,
    must_delay_report,
    order_failures,
)
from allaboard.analysis.failures.signal_advice import (
    crash_advice,
    crash_place,
    unhandled_signal_advice,
)
from allaboard.analysis.failures.time_limit_warning import ended_on_warning
from allaboard.analysis.member_names import name_first_members, name_members
from allaboard.analysis.parameter_servers import SERVER_JOBS, training_members
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase
from allaboard.facts.samples import (
    ended_member,
    sample_evaluator,
    sample_job,
    sample_member,
    waiting_member,
)
from allaboard.facts.signal_name import signal_name

TIMER_SIGNALS: dict[int, str] = {
    signal.SIGALRM: "signal.alarm, signal.setitimer",
    signal.SIGVTALRM: "signal.setitimer",
    signal.SIGPROF: "signal.setitimer, a profiler",
}
"""Signals of a process's own timers, and what starts these timers; see setitimer(2)."""


def check(view: JobView) -> Iterator[Claim]:
    order = order_failures(view)
    killed = [
        m
        for m in order.own_failures
        if _was_killed(m) and not _is_reported_server(view, m) and not ended_on_warning(view, m)
    ]
    unhandled = [m for m in killed if _signal(m) in USER_SIGNALS and m not in order.evaluators]
    together = sorted(unhandled, key=lambda m: m.who.rank)
    if together and not any(must_delay_report(view, m) for m in together):
        yield _claim_unhandled_signal(together, order)
    separate = [m for m in killed if m not in together and not must_delay_report(view, m)]
    for group in _group_by_report(separate) if view.ended else [[m] for m in separate]:
        yield soften_evaluator_claim(view, group[0], _claim(group, order))


def _group_by_report(killed: list[Member]) -> list[list[Member]]:
    """Group members that a launcher reported in one line, as srun does for all tasks of a host, or at one
    moment, as torchrun does."""
    groups: dict[tuple[object, ...], list[Member]] = {}
    for killed_member in killed:
        end = killed_member.exit
        assert end is not None
        report = end.last_line or end.ended_at or id(killed_member)
        groups.setdefault((report, _signal(killed_member)), []).append(killed_member)
    return list(groups.values())


def _was_killed(member: Member) -> bool:
    end = member.exit
    return end is not None and end.signal is not None and not end.oom and member.raised is None


def _signal(member: Member) -> int | None:
    return member.exit.signal if member.exit is not None else None


def _claim_unhandled_signal(members: list[Member], order: FailureOrder) -> Claim:
    """Report members that were ended by a signal for which the script should have a handler."""
    first_member = members[0]
    assert first_member.exit is not None and first_member.exit.signal is not None
    name = signal_name(first_member.exit.signal)
    plural = len(members) > 1
    return Claim(
        summary=f"{name_members(members)} {'were' if plural else 'was'} killed by {name}, for "
        "which no handler was set",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"killed by {name} in phase {first_member.phase.name.lower()}", "wait status"),
            *order.consequence_evidence(first_member),
        ),
        fix=unhandled_signal_advice(name),
        since=first_member.exit.ended_at,
    )


def _is_reported_server(view: JobView, member: Member) -> bool:
    """Return True if PS001 reports it, together with the members that wait for it."""
    return (
        member.who.job in SERVER_JOBS
        and member.phase > Phase.ARRIVED
        and bool(training_members(view))
    )


def _claim(members: list[Member], order: FailureOrder) -> Claim:
    first_member = members[0]
    assert first_member.exit is not None and first_member.exit.signal is not None
    name = signal_name(first_member.exit.signal)
    evidence = [
        Evidence(f"killed by {name} in phase {first_member.phase.name.lower()}", "wait status")
    ]
    if first_member.step:
        evidence.append(Evidence(f"its last step was {first_member.step}", "black box"))
    evidence += order.consequence_evidence(first_member)
    crashed = first_member.exit.signal in CRASH_SIGNALS
    if crashed and first_member.exit.last_line:
        evidence.append(Evidence(first_member.exit.last_line, first_member.log))
    closed = has_closed_its_connections(first_member)
    place = crash_place(first_member.exit.last_line) if crashed else ""
    if closed:
        fix = "look for os.closerange, os.close or code that makes a daemon, which closes all descriptors"
    elif place:
        fix = crash_advice(place)
    elif crashed:
        fix = f"read the end of {first_member.log}; ulimit -c unlimited for a core dump"
    elif first_member.exit.signal in TIMER_SIGNALS:
        fix = (
            f"most likely a timer of the program itself ({TIMER_SIGNALS[first_member.exit.signal]}): set a "
            "handler, and stop the timer before the program exits, when Python removes its handlers"
        )
    else:
        fix = "there was no out-of-memory event: find out who sent it (a scheduler, a limit, a person)"
    return Claim(
        summary=f"{name_first_members(members)} {'were' if len(members) > 1 else 'was'} killed by {name}"
        + (f" at {place}" if place else "")
        + (", after it had closed the descriptors of its own connections" if closed else ""),
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix=fix,
        since=first_member.exit.ended_at,
    )


_LOST = ("RuntimeError", "[gloo/pair.cc] Connection closed by peer [127.0.0.1]:18334")
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one worker was killed by SIGKILL, and the others lost their peer": (
            sample_job(
                ended_member(0, ended_at=95.3, raised=_LOST),
                ended_member(1, signal=9),
                ended_member(2, ended_at=95.4, raised=_LOST),
            ),
            "worker 1 was killed by SIGKILL",
        ),
        "a worker closed its own connections, and a peer failed just before it aborted": (
            sample_job(
                ended_member(0, ended_at=94.0, code=1),
                ended_member(
                    1,
                    ended_at=94.4,
                    signal=6,
                    last_line="what():  [enforce fail at /p/third_party/gloo/gloo/transport/tcp/loop.cc:212] "
                    "nfds != -1. -1 vs -1",
                ),
            ),
            "worker 1 was killed by SIGABRT, after it had closed the descriptors of its own connections",
        ),
        "SIGUSR1 reaches two workers whose script has no handler for it": (
            sample_job(ended_member(0, signal=10), ended_member(1, signal=10)),
            "worker 0, worker 1 were killed by SIGUSR1, for which no handler was set",
        ),
        "a worker crashed with SIGSEGV": (
            sample_job(sample_member(0), ended_member(1, signal=11)),
            "worker 1 was killed by SIGSEGV",
        ),
        "a worker crashed with SIGSEGV, and faulthandler shows where": (
            sample_job(
                sample_member(0),
                ended_member(
                    1,
                    signal=11,
                    last_line="Fatal Python error: Segmentation fault, train.py:19 in decode",
                ),
            ),
            "worker 1 was killed by SIGSEGV at train.py:19 in decode",
        ),
        "an evaluator was killed by SIGKILL": (
            sample_job(
                sample_member(0), ended_member(1, signal=9, member={"who": sample_evaluator(1)})
            ),
            "evaluator 0 was killed by SIGKILL; the training goes on without it",
        ),
    },
    silent_on={
        "a batch system's signal before the time limit, which EXIT013 reports": sample_job(
            ended_member(0, signal=10), sample_member(1), time_limit_at=150.0
        ),
        "the out-of-memory killer ended a worker, which RES001 reports": sample_job(
            waiting_member(0), ended_member(1, signal=9, oom=True)
        ),
        "allaboard itself ended the worker": sample_job(
            ended_member(0, signal=15, ours=True), ended_member(1, code=0)
        ),
        "the allaboard agent on the worker's host was asked to end": sample_job(
            waiting_member(0), ended_member(1, signal=15, member={"interrupted": 94.9})
        ),
        "a launcher ended the worker after another one had failed": sample_job(
            ended_member(0, ended_at=97, signal=15), ended_member(1, raised=("ValueError", "x"))
        ),
    },
    drill=(
        "closes-its-descriptors",
        "killed",
        "tf-killed",
        "ps-sync-killed",
        "restart-killed",
        "restart-tf2-worker",
        "first-killed",
    ),
    relations=Relations(begins_failure=True),
)
