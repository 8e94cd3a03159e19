"""A worker is stopped by a signal (SIGSTOP, Ctrl-Z) or held by a debugger.

## Why it matters
A stopped process does not fail; it makes no progress. Its peers wait for it in their next collective: PyTorch
for half an hour by default, TensorFlow until its own health check reports, wrongly, that the worker has
crashed. It is certain that the process is stopped. Who stopped it, and whether on purpose, cannot be seen, so
a job is ended for it only if you asked for that (`--on-hang stop`, or `--stopped-after` of a job that
restarts), and never because of a debugger.

A stopped evaluator, launcher, or child process that is not a rank is a warning and does not end the job: the
training goes on without it, unless a rank waits for that child.

## What to do
Run `kill -CONT PID` to resume it. If a debugger holds it (state `t`), detach the debugger. If it happens
again, find out what sends SIGSTOP: batch systems and the power savers of some laptops stop processes too.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host, conjugate_verb
from allaboard.analysis.parameter_servers import (
    AUXILIARY_JOBS,
    has_parameter_servers,
    is_auxiliary,
    only_serves,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Op, Phase, Severity, Who
from allaboard.facts.rank_sets import describe_ranks, format_ranks

MIN_STOPPED_S = 1.0
"""Seconds in the stopped state before it is reported: shells and samplers stop a process briefly."""


def check(view: JobView) -> Iterator[Claim]:
    for member in view.alive:
        if member.is_stopped and view.now - member.os_state_since >= MIN_STOPPED_S:
            yield _claim(view, member)


def _claim(view: JobView, member: Member) -> Claim:
    traced, aside = member.os_state == "t", is_auxiliary(member)
    waiting = [
        (m, m.op) for m in view.alive if m.op is not None and m is not member and not only_serves(m)
    ]
    evidence = [
        Evidence(
            f"state {member.os_state} for {view.now - member.os_state_since:.0f} s",
            f"/proc/{member.who.pid}/stat",
        )
    ]
    if waiting and not aside:
        evidence.append(Evidence(_describe_waiting(view, waiting), "black box"))
    return Claim(
        summary=f"{_full_name(member)} is "
        + ("held by a debugger" if traced else "stopped (SIGSTOP or Ctrl-Z)")
        + ("; the training goes on without it" if member.who.job in AUXILIARY_JOBS else ""),
        who=(member.who,),
        evidence=tuple(evidence),
        fix="detach the debugger"
        if traced
        else command_on_host(view, member, f"kill -CONT {member.who.pid}"),
        severity=Severity.WARNING if aside else Severity.ERROR,
        certainty=Certainty.LIKELY if aside else Certainty.CERTAIN,
        since=member.os_state_since,
    )


def _full_name(member: Member) -> str:
    """Return its name; a launcher and a child process are named after the worker that they belong to."""
    if member.candidate:
        return f"a child of {member.who.name}"
    return f"the launcher of {member.who.name}" if member.launcher else member.who.name


def _describe_waiting(view: JobView, waiting: list[tuple[Member, Op]]) -> str:
    """Return which members wait, by the names under which the user started them."""
    call = waiting[0][1].name
    verb = conjugate_verb("wait", waiting)
    if has_parameter_servers(view):
        names = ", ".join(m.who.name for m, _ in waiting)
        return f"{names} {verb} in {call} for {view.now - min(o.since for _, o in waiting):.0f} s"
    ranks = [m.who.rank for m, _ in waiting if m.who.rank >= 0]
    unranked = [m.who.name for m, _ in waiting if m.who.rank < 0]
    return f"{describe_ranks(format_ranks(ranks), len(ranks), unranked)} {verb} in {call}"


def _view(state: str, since: float = 8.0, job: str = "worker", candidate: bool = False) -> JobView:
    worker = Member(
        who=Who(job=job, index=1, rank=1, host="a", pid=4242),
        worker=1,
        phase=Phase.TRAINING,
        os_state=state,
        os_state_since=since,
        candidate=candidate,
    )
    return JobView(now=10.0, launched=2, members=(worker,))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker that SIGSTOP has stopped": (
            _view("T"),
            "worker 1 is stopped (SIGSTOP or Ctrl-Z)",
        ),
        "a stopped evaluator, without which the training goes on": (
            _view("T", job="evaluator"),
            "evaluator 1 is stopped (SIGSTOP or Ctrl-Z); the training goes on without it",
        ),
        "a stopped child process that is not itself a rank": (
            _view("T", candidate=True),
            "a child of worker 1 is stopped (SIGSTOP or Ctrl-Z)",
        ),
        "a worker that a debugger holds": (_view("t"), "worker 1 is held by a debugger"),
    },
    silent_on={
        "a worker that sleeps (state S), which is not stopped": _view("S"),
        "a worker that has been stopped for half a second": _view("T", since=9.5),
    },
    passes=True,
    drill=(
        "stopped",
        "tf-stopped",
        "ps-stopped",
        "ps-sync-stopped",
        "tf2-ps-stopped",
        "restart-stopped",
        "restart-ps-stopped",
        "leader-agent-killed-ps",
        "leader-cut-off-ps",
    ),
)
