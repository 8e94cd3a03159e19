"""A worker ended before it reached init, and the others wait for it there.

## Why it matters
An import that fails, a missing file or a bad argument on one worker is a traceback in one log among many.
The others wait for that worker until their framework's timeout, if it has one.

## What to do
Fix what the exception says; its line is given. If the worker ended with exit code 0, its script returned
before it called init: look for an early `return` or an `if` that only some ranks enter.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.failures.known_errors import advice
from allaboard.analysis.roll_call.ended_by_launcher import sent_away
from allaboard.analysis.roll_call.roll_call import Roll, roll_calls
from allaboard.analysis.stalls.stall import STOOD
from allaboard.contracts import Rule
from allaboard.facts import ATTACHED, Certainty, Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.samples import coming, declared, ended, gathering, held, member
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        waits = _wait_inside(view, roll)
        not_they = sent_away(roll)
        for one in (m for m in roll.gone if not _raised_in(roll, m) and m not in not_they):
            # A child may be any program; whether one belongs here is not known of those who were not held.
            if one.interrupted is None and (roll.held or (waits and not one.candidate)):
                yield _claim(roll, one)


def _wait_inside(view: JobView, roll: Roll) -> bool:
    """Whether others, who were not held (`--observe`), have been in init for a while without a rank."""
    since = max((m.phase_since for m in roll.inside), default=view.now)
    return bool(roll.missing) and view.now - since >= STOOD


def _raised_in(roll: Roll, one: Member) -> bool:
    """Whether it came to this init, and left it again by an exception: those who stand at the door still are
    on their way in, as it was."""
    return one.round == roll.round > 0 and one.phase < Phase.ARRIVED


def _claim(roll: Roll, one: Member) -> Claim:
    end, error = one.exit, one.raised
    assert end is not None
    evidence = [
        Evidence("its agent's stream ended, and it did not come again", "roll call")
        if end.lost
        else Evidence(_how(one), "wait status")
    ]
    if error is not None:
        place = (
            f"{error.where.file}:{error.where.line}" if error.where is not None else "excepthook"
        )
        evidence.append(Evidence(f"{error.type}: {error.message[:200]}", place))
    elif end.last_line:
        evidence.append(Evidence(end.last_line[:200], "its last line"))
    evidence.append(
        Evidence(f"{len(roll.held or roll.inside)} of {roll.size} wait in init", "roll call")
    )
    at = f" at {error.where}" if error is not None and error.where is not None else ""
    host, who = one.who.host, one.who.name
    return Claim(
        summary=f"{who} has gone {_which(roll, one)}: {host} is no longer heard from"
        if end.lost
        else f"{who} ended {_which(roll, one)} ({_how(one)}){at}",
        who=(one.who,),
        evidence=tuple(evidence),
        fix=f"see whether {host} is up and still on the network: ping -c 3 {shlex.quote(host)}"
        if end.lost
        else (error is not None and advice(error))
        or f"read its output{_log(one)}, fix that, start again",
        # A program that a worker ran for a moment ends just so; whoever was not held may meet others.
        certainty=Certainty.LIKELY if one.candidate or not roll.held else Certainty.CERTAIN,
        since=error.at if error is not None else end.at,
    )


def _which(roll: Roll, one: Member) -> str:
    """A job that joins again has several; who left before one of them has been through the others."""
    through = min(one.round, roll.round - 1)
    if through < 1:
        return "before init"
    return f"after {through} init{'s' if through > 1 else ''}, before its next one"


def _log(one: Member) -> str:
    if one.worker < 0 or ATTACHED in one.notes:
        return ""  # it had ended before anybody looked, or nobody kept what it printed
    return f" ({one.log} of the run folder, where `allaboard run` started it)"


def _how(one: Member) -> str:
    end = one.exit
    assert end is not None
    if end.oom:
        return "killed by the kernel: out of memory"
    if end.signal is not None:
        return f"killed by {signal_name(end.signal)}"
    return f"exit code {end.code}" if end.code is not None else "its end was not seen"


_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
_INSIDE = tuple(member(r, phase=Phase.JOINING, phase_since=60.0) for r in (0, 1))
"""Nobody was held: they went in by themselves."""
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "an exception": (
            gathering(
                held(0),
                ended(1, raised=("FileNotFoundError", "data.csv"), member=_EARLY),
                held(2),
            ),
            "worker 1 ended before init (exit code 1) at train.py:41 in train",
        ),
        "returned early": (
            gathering(held(0), held(1), ended(2, code=0, member=_EARLY)),
            "worker 2 ended before init (exit code 0)",
        ),
        "left before its third init": (
            gathering(held(0, round=3), held(1, round=3), ended(2, code=0, member={"round": 2})),
            "worker 2 ended after 2 inits, before its next one (exit code 0)",
        ),
        "killed": (
            gathering(held(0), ended(1, signal=9, member=_EARLY), held(2)),
            "worker 1 ended before init (killed by SIGKILL)",
        ),
        "nobody was held": (
            gathering(*_INSIDE, ended(2, code=0, member=_EARLY)),
            "worker 2 ended before init (exit code 0)",
        ),
        "its host has gone": (
            gathering(held(0), ended(1, lost=True, code=None, member=_EARLY), held(2)),
            "worker 1 has gone before init: a is no longer heard from",
        ),
    },
    silent_on={
        "nobody waits for it": gathering(coming(0), ended(1, code=1, member=_EARLY), coming(2)),
        "it came to init, which raised there": gathering(
            held(0), ended(1, code=None, member={"phase": Phase.IMPORTED}), held(2)
        ),
        "its host was interrupted": gathering(
            held(0), ended(1, signal=2, member=_EARLY | {"interrupted": 94.9}), held(2)
        ),
        "nobody was held, and all who were to come are in init": gathering(
            *(member(r, phase=Phase.JOINING, declared=declared(r, 2)) for r in (0, 1)),
            ended(2, code=0, member=_EARLY),
        ),
        "nobody was held, and a child of one that is late has ended": gathering(
            *_INSIDE, coming(2), ended(2, code=1, member=_EARLY | {"candidate": True})
        ),
        "they have just come to init": gathering(
            *(member(r, phase=Phase.JOINING, phase_since=97.0) for r in (0, 1)),
            ended(2, code=0, member=_EARLY),
        ),
        "it is only late": gathering(held(0), coming(1), held(2)),
        "a program that a late worker ran for a moment": gathering(
            held(0),
            coming(1),
            ended(1, code=None, member=_EARLY | {"candidate": True}),
            held(2),
            joined=True,
            leads=True,
            launched=1,
        ),
    },
    since="0.1",
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
