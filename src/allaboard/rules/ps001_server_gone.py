"""A parameter server exited while the workers still need it.

## Why it matters
The variables that it held are lost. TensorFlow 1 does not report this: a worker blocks in `Session.run`, or
in `Session.close`. MonitoredTrainingSession calls the latter before it creates its session again, and it
waits for the dead server silently and without a limit. TensorFlow 2's chief fails within seconds and names
the server's address; its workers stay alive and wait for nothing.

Every worker waits forever for this server, in its next step. No other worker is the cause, and ending the
workers changes nothing.

## What to do
Start the server again at the same address. A TensorFlow 1 worker that uses MonitoredTrainingSession then
continues, from the newest checkpoint if there is one. `allaboard run --on-failure restart` does this for you,
and with `--ps-snapshot SECONDS` the server is restored from the newest snapshot.

If the server exited with code 0, it reached the end of its script: its branch for `ps` must end in
`server.join()`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import SAME_CAUSE_WINDOW_S, ended_at
from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    SERVER_JOBS,
    TF2_CHIEF_CALL,
    describe_exit,
    find_task,
    task_name,
    training_members,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Exit, JobView, Member, Op, Phase, Stage
from allaboard.facts.samples import ended_member, ps_member, sample_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    for server in view.members:
        end = server.exit
        if server.who.job not in SERVER_JOBS or end is None or end.ours or end.oom:
            continue
        newest = find_task(view, server.who.job, server.who.index)
        was_replaced = newest is not None and newest is not server and newest.phase >= Phase.JOINED
        if server.phase <= Phase.ARRIVED or _has_own_exception(server) or was_replaced:
            continue  # it never served, its exception says more, or another serves in its place
        dependents = [
            m
            for m in training_members(view)
            if m.alive or (m.exit is not None and m.exit.code != 0)
        ]
        if dependents and (view.ended or view.now - ended_at(server) >= SAME_CAUSE_WINDOW_S):
            yield _claim(view, server, end, dependents)


def _has_own_exception(server: Member) -> bool:
    return server.raised is not None and server.raised.type not in (
        "SystemExit",
        "KeyboardInterrupt",
    )


def _fix(view: JobView, server: Member, end: Exit) -> str:
    if end.lost:
        host = shlex.quote(server.who.host)
        return f"ping -c 3 {host}   # repair or replace it, then restart the job from its newest checkpoint"
    if end.signal is None and end.code == 0:
        return "let its branch for ps end in server.join()"
    if not view.comes_back:
        return f"read {server.log}, then restart the job from its newest checkpoint"
    if any(m.declared is not None and m.declared.call == TF2_CHIEF_CALL for m in view.members):
        return (
            "nothing: all tasks are restarted, and the chief continues from its newest checkpoint"
        )
    return f"nothing: it is restarted, and the workers continue from the newest {view.comes_back}"


def _claim(view: JobView, server: Member, end: Exit, dependents: list[Member]) -> Claim:
    blocked = [m for m in dependents if m.alive and m.op is not None]
    evidence = [
        Evidence("its agent is no longer reachable", "connection to the agent")
        if end.lost
        else Evidence(describe_exit(end), "wait status")
    ]
    if blocked:
        calls = ", ".join(sorted({m.op.name for m in blocked if m.op is not None}))
        evidence.append(Evidence(f"{name_members(blocked)} in {calls}", "black box"))
    if end.last_line and end.signal is None:
        evidence.append(Evidence(end.last_line[:200], "its last line"))
    steps = max((m.step for m in dependents), default=0)
    if steps:
        evidence.append(
            Evidence(f"the most advanced worker had completed {steps} runs", "black box")
        )
    return Claim(
        summary=f"{task_name(server)} {_describe_loss(server, end)}; {name_members(dependents)} cannot "
        "continue without it",
        who=(server.who,),
        evidence=tuple(evidence),
        fix=_fix(view, server, end),
        certainty=Certainty.LIKELY if end.lost else Certainty.CERTAIN,
        since=end.ended_at,
    )


def _describe_loss(server: Member, end: Exit) -> str:
    """Return how it was lost. A host that is not reachable may still hold the variables."""
    if end.lost:
        return f"was lost with host {server.who.host}, which is no longer reachable"
    return f"{describe_exit(end)} and its variables are lost"


_RUN = Op("Session.run", 41, 95.0)
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "a parameter server was killed by SIGKILL": (
            sample_job(
                ps_member("worker", 0, op=_RUN),
                ps_member("worker", 1, op=_RUN),
                ps_member("ps", 0, exit=Exit(ended_at=95.0, signal=9)),
            ),
            "ps 0 was killed by SIGKILL and its variables are lost; worker 0, worker 1 cannot continue "
            "without it",
        ),
        "a parameter server's script ended with exit code 0": (
            sample_job(
                ps_member("worker", 0, op=_RUN),
                ps_member("ps", 0, exit=Exit(ended_at=95.0, code=0)),
            ),
            "ps 0 exited with code 0 and its variables are lost; worker 0 cannot continue without it",
        ),
        "a parameter server's host is lost": (
            sample_job(
                ps_member("worker", 0, op=_RUN),
                ps_member("ps", 0, exit=Exit(ended_at=95.0, lost=True)),
                comes_back="checkpoint",
            ),
            "ps 0 was lost with host a, which is no longer reachable; worker 0 cannot continue without it",
        ),
        "a killed parameter server is being restarted": (
            sample_job(
                ps_member("worker", 0, op=_RUN),
                ps_member("ps", 0, exit=Exit(ended_at=98.5, signal=9), phase_since=90.0),
                ps_member("ps", 0, number=3, phase=Phase.IMPORTING, phase_since=99.0),
                comes_back="snapshot",
            ),
            "ps 0 was killed by SIGKILL and its variables are lost; worker 0 cannot continue without it",
        ),
    },
    silent_on={
        "the workers have finished with exit code 0": sample_job(
            ps_member("worker", 0, exit=Exit(ended_at=94.0, code=0)),
            ps_member("ps", 0, exit=Exit(ended_at=95.0, code=0)),
        ),
        "allaboard itself ended the parameter server": sample_job(
            ps_member("worker", 0),
            ps_member("ps", 0, exit=Exit(ended_at=95.0, signal=15, ours=True)),
        ),
        "another process serves in place of the killed one": sample_job(
            ps_member("worker", 0),
            ps_member("ps", 0, exit=Exit(ended_at=90.0, signal=9)),
            ps_member("ps", 0, number=3, phase_since=93.0),
        ),
        "a job without parameter servers": sample_job(waiting_member(0), ended_member(1, signal=9)),
    },
    drill=("ps-killed", "tf2-ps-killed", "ps-returns", "restart-ps", "restart-tf2-ps"),
)
