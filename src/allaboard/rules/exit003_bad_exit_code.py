"""A worker ended with an exit code other than 0, without an exception.

## Why it matters
`sys.exit(3)`, `os._exit` or a native library ended it. There is no traceback to be found, and its peers
report only a closed connection. An exit code of 128 plus a signal's number comes from a shell or a
container's init: the program that it had started was ended by that signal. 137 is SIGKILL.

## What to do
Search the script and its libraries for the exit; the worker's last line may tell. If that is the end of a
traceback, the script caught the exception and exited, or no probe was there to see it (`python -I`). For a
signal, ask who sends it: the out-of-memory killer, a container's limit, a scheduler, a person. Of an
evaluator it is a warning, which ends no job: the training goes on without it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    CRASH_SIGNALS,
    must_delay_report,
    order_failures,
)
from allaboard.analysis.parameter_servers.parameter_servers import serves
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.samples import coming, ended, evaluator, held, job, waiting


def check(view: JobView) -> Iterator[Claim]:
    for one in order_failures(view).own_failures:
        end = one.exit
        if end is None or end.signal is not None or not _silent(one) or serves(one):
            continue
        if not must_delay_report(view, one):
            by = _signal(end.code)
            claim = Claim(
                summary=f"{one.who.name} ended with exit code {end.code}"
                + (f" (128 + {by.value}: {by.name})" if by else "")
                + (f" after step {one.step}" if one.step else ""),
                who=(one.who,),
                evidence=(
                    Evidence(f"exit code {end.code}, {_seen(one)}", "wait status"),
                    Evidence(end.last_line or "it printed nothing", "its last line"),
                ),
                fix=_fix(by, one),
                since=end.at,
            )
            yield soften_evaluator_claim(view, one, claim)


def _seen(one: Member) -> str:
    return "no exception was seen" if one.probed else "seen from outside only, without a probe"


def _signal(code: int | None) -> signal.Signals | None:
    """By which signal a program below the member ended, as shells and containers tell it; POSIX, 2.8.2."""
    try:
        return signal.Signals((code or 0) - 128)
    except ValueError:
        return None


_ERROR = re.compile(r"(\[rank\d+\]: ?)?[\w.]*(Error|Exception)(: |$)")
"""The last line of a traceback."""


def _fix(by: signal.Signals | None, one: Member) -> str:
    if by is None:
        if one.exit is not None and _ERROR.match(one.exit.last_line):
            return (
                f"fix what {one.log} ends with; if that is not it, look for an except or a sys.excepthook "
                "that calls sys.exit or os._exit"
            )
        return f"look for sys.exit or os._exit; read {one.log}"
    if by in CRASH_SIGNALS:
        return f"native code of a program below it crashed; read the end of {one.log}"
    killer = "the out-of-memory killer, a limit, " if by is signal.SIGKILL else ""
    return (
        f"a program below it was ended by {by.name}, unless something exits with {by + 128} itself: find "
        f"out who sends it ({killer}a scheduler, a person); read {one.log}"
    )


def _silent(one: Member) -> bool:
    return one.raised is None or one.raised.type == "SystemExit"


_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "os._exit": (
            job(waiting(0), ended(1, code=3)),
            "worker 1 ended with exit code 3 after step 40",
        ),
        "a shell tells of a signal": (
            job(waiting(0), ended(1, code=137)),
            "worker 1 ended with exit code 137 (128 + 9: SIGKILL) after step 40",
        ),
        "an evaluator": (
            job(waiting(0), ended(1, code=3, member={"who": evaluator(1), "step": 0})),
            "evaluator 0 ended with exit code 3; the training goes on without it",
        ),
        "a code beyond all signals": (
            job(waiting(0), ended(1, code=255)),
            "worker 1 ended with exit code 255 after step 40",
        ),
    },
    silent_on={
        "exit code 0": job(waiting(0), ended(1, code=0)),
        "it raised": job(waiting(0), ended(1, raised=("KeyError", "x"))),
        "others wait in init": job(held(0), ended(1, code=2, member=_EARLY), rolled_at=None),
        "nobody failed": job(waiting(0), coming(1)),
    },
    since="0.1",
    drill=("exits-3", "rpc-actor-exits"),
    relations=Relations(begins_failure=True),
)
