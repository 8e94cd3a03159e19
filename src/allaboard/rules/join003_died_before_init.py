"""A worker exited before it reached init, where the others wait for it.

## Why it matters
A failed import, a missing file or a bad argument on one worker is a traceback in one log among many. The
other workers wait for it until their framework's timeout, if it has one.

## What to do
Fix the exception; the finding gives its line. If the worker exited with code 0, its script returned before it
called init: look for an early `return`, or an `if` that only some ranks enter.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator

from allaboard.analysis.failures.exception_retry import retry_of_exception
from allaboard.analysis.failures.failure_causality import CRASH_SIGNALS, USER_SIGNALS
from allaboard.analysis.failures.known_errors import known_remedy, remedy_of_last_line
from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.analysis.failures.signal_advice import (
    crash_advice,
    crash_place,
    signal_advice,
    unhandled_signal_advice,
)
from allaboard.analysis.log_ends.exception_text import without_boilerplate
from allaboard.analysis.roll_call.ended_by_launcher import members_ended_by_launcher
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.stalls.stall import MIN_STUCK_S
from allaboard.contracts import Rule
from allaboard.facts import ATTACHED, Certainty, Claim, Evidence, JobView, Member, Phase, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    led_job,
    sample_declaration,
    sample_member,
)
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        waits = _others_wait_in_init(view, roll)
        ended_by_launcher = members_ended_by_launcher(roll)
        for exited in (
            m for m in roll.ended if not _raised_in(roll, m) and m not in ended_by_launcher
        ):
            # A child process may be any program: only a member that was held surely belongs to the job.
            if exited.interrupted is None and (
                roll.held_members or (waits and not exited.candidate)
            ):
                yield _claim(roll, exited)


def _others_wait_in_init(view: JobView, roll: RollCall) -> bool:
    """Return True if members that were not held (`--observe`) have waited in init for STOOD seconds."""
    since = max((m.phase_since for m in roll.in_init), default=view.now)
    return bool(roll.missing) and view.now - since >= MIN_STUCK_S


def _raised_in(roll: RollCall, member: Member) -> bool:
    """Return True if it reached this init and left it by an exception: members at the gate have yet to enter
    the init that it was in."""
    return member.round == roll.round > 0 and member.phase < Phase.ARRIVED


def _claim(roll: RollCall, member: Member) -> Claim:
    end, error = member.exit, member.raised
    assert end is not None
    evidence = [
        Evidence("the connection to its agent is lost and was not restored", "roll call")
        if end.lost
        else Evidence(_describe_end(member), "wait status")
    ]
    if error is not None:
        source = (
            f"{error.where.file}:{error.where.line}" if error.where is not None else "excepthook"
        )
        evidence.append(
            Evidence(f"{error.type}: {without_boilerplate(error.message)[:200]}", source)
        )
    elif end.last_line:
        evidence.append(Evidence(end.last_line[:200], "its last line"))
    evidence.append(
        Evidence(
            f"{len(roll.held_members or roll.in_init)} of {roll.size} wait in init", "roll call"
        )
    )
    remedy = known_remedy(error) if error is not None else remedy_of_last_line(end.last_line)
    cause = f": {remedy.cause}" if remedy is not None and remedy.cause else _library_cause(error)
    location = f" at {error.where}" if error is not None and error.where is not None else ""
    host, name = member.who.host, member.who.name
    return Claim(
        summary=f"{name} is lost {_which_init(roll, member)}: host {host} is no longer reachable"
        if end.lost
        else f"{name} exited {_which_init(roll, member)} ({_describe_end(member)}){location}{cause}",
        who=(member.who,),
        evidence=tuple(evidence),
        fix=f"check that {host} is up and on the network: ping -c 3 {shlex.quote(host)}"
        if end.lost
        else remedy.fix
        if remedy is not None
        else _end_advice(member),
        # A helper program of a worker exits in the same way; and members that were not held may meet others.
        certainty=Certainty.LIKELY
        if member.candidate or not roll.held_members
        else Certainty.CERTAIN,
        since=error.raised_at if error is not None else end.ended_at,
        retry=_retry(member),
    )


def _library_cause(error: Raised | None) -> str:
    """Return the cause of an exception that a framework raised, as a clause; "" if it is not known."""
    failure = explain_library_error(error) if error is not None else None
    if failure is None or failure.is_generic or not failure.is_own:
        return ""
    return f": it {failure.says}"


def _retry(member: Member) -> Retry:
    end, error = member.exit, member.raised
    if end is not None and end.oom:
        return Retry.RESOURCES
    return retry_of_exception(error) if error is not None else Retry.HERE


def _which_init(roll: RollCall, member: Member) -> str:
    """Return the init that it did not reach: a job may join several times, and it passed the earlier ones."""
    through = min(member.round, roll.round - 1)
    if through < 1:
        return "before init"
    return f"after {through} init{'s' if through > 1 else ''}, before its next one"


def _end_advice(member: Member) -> str:
    """Return the next step by how it ended. A signal may have come from outside: its output has no cause."""
    end = member.exit
    assert end is not None
    if end.signal in USER_SIGNALS:
        return unhandled_signal_advice(signal_name(end.signal))
    if end.signal == signal.SIGKILL and not end.oom:
        return signal_advice(end.signal)
    if end.signal in CRASH_SIGNALS and (place := crash_place(end.last_line)):
        return crash_advice(place)
    return f"read its output{_log_hint(member)}, fix the cause and restart the job"


def _log_hint(member: Member) -> str:
    if member.worker < 0 or ATTACHED in member.notes:
        return ""  # it exited before it was seen, or its output was not recorded
    return f" ({member.log} in the run folder, if `allaboard run` started it)"


def _describe_end(member: Member) -> str:
    end = member.exit
    assert end is not None
    if end.oom:
        return "killed by the kernel, out of memory"
    if end.signal is not None:
        return f"killed by {signal_name(end.signal)}"
    return f"exit code {end.code}" if end.code is not None else "exit code unknown"


_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
_INSIDE = tuple(sample_member(r, phase=Phase.JOINING, phase_since=60.0) for r in (0, 1))
"""Members that no gate holds (`--observe`): they entered init by themselves."""
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker raised FileNotFoundError before init": (
            gathering_job(
                arrived_member(0),
                ended_member(1, raised=("FileNotFoundError", "data.csv"), member=_EARLY),
                arrived_member(2),
            ),
            "worker 1 exited before init (exit code 1) at train.py:41 in train",
        ),
        "a worker's script returned before init": (
            gathering_job(
                arrived_member(0), arrived_member(1), ended_member(2, code=0, member=_EARLY)
            ),
            "worker 2 exited before init (exit code 0)",
        ),
        "a worker exited before its third init": (
            gathering_job(
                arrived_member(0, round=3),
                arrived_member(1, round=3),
                ended_member(2, code=0, member={"round": 2}),
            ),
            "worker 2 exited after 2 inits, before its next one (exit code 0)",
        ),
        "a worker was killed before init": (
            gathering_job(
                arrived_member(0), ended_member(1, signal=9, member=_EARLY), arrived_member(2)
            ),
            "worker 1 exited before init (killed by SIGKILL)",
        ),
        "a worker exited before init, under `--observe`": (
            gathering_job(*_INSIDE, ended_member(2, code=0, member=_EARLY)),
            "worker 2 exited before init (exit code 0)",
        ),
        "a worker's host was lost before init": (
            gathering_job(
                arrived_member(0),
                ended_member(1, lost=True, code=None, member=_EARLY),
                arrived_member(2),
            ),
            "worker 1 is lost before init: host a is no longer reachable",
        ),
    },
    silent_on={
        "a worker exited, and no other waits for it in init": gathering_job(
            coming_member(0), ended_member(1, code=1, member=_EARLY), coming_member(2)
        ),
        "a worker reached init and left it by an exception": gathering_job(
            arrived_member(0),
            ended_member(1, code=None, member={"phase": Phase.IMPORTED}),
            arrived_member(2),
        ),
        "the worker's host was interrupted": gathering_job(
            arrived_member(0),
            ended_member(1, signal=2, member=_EARLY | {"interrupted": 94.9}),
            arrived_member(2),
        ),
        "under `--observe`, all expected workers are in init": gathering_job(
            *(
                sample_member(r, phase=Phase.JOINING, declared=sample_declaration(r, 2))
                for r in (0, 1)
            ),
            ended_member(2, code=0, member=_EARLY),
        ),
        "under `--observe`, a child process of a late worker exited": gathering_job(
            *_INSIDE, coming_member(2), ended_member(2, code=1, member=_EARLY | {"candidate": True})
        ),
        "under `--observe`, the others entered init three seconds ago": gathering_job(
            *(sample_member(r, phase=Phase.JOINING, phase_since=97.0) for r in (0, 1)),
            ended_member(2, code=0, member=_EARLY),
        ),
        "a worker is alive, and only late": gathering_job(
            arrived_member(0), coming_member(1), arrived_member(2)
        ),
        "a helper program of a late worker exited": led_job(
            arrived_member(0),
            coming_member(1),
            ended_member(1, code=None, member=_EARLY | {"candidate": True}),
            arrived_member(2),
        ),
    },
    drill=(
        "dies-before-init",
        "leaves-before-init",
        "tf-dies-before-init",
        "ps-dies-at-start",
        "dies-in-import",
        "leader-dies-in-import",
        "dies-before-leader",
        "no-rank",
        "node-rank",
        "etcd-first-dies",
        "unplugged",
    ),
)
