"""A worker exited with a code other than 0 and without an exception.

## Why it matters
`sys.exit(3)`, `os._exit` or a native library ended it. There is no traceback, and its peers report only a
closed connection. An exit code of 128 plus a signal's number comes from a shell or a container's init: the
program that it had started was ended by that signal. 137 is SIGKILL.

## What to do
Search the script and its libraries for the exit; the worker's last line of output may help. If that is the
end of a traceback, the script caught the exception and exited, or there was no probe to see it (`python -I`).
For a signal, find out who sends it: the out-of-memory killer, a container's limit, a scheduler, a person. For
an evaluator this is a warning and does not end the job: the training goes on without it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    CRASH_SIGNALS,
    crash_beside,
    must_delay_report,
    order_failures,
)
from allaboard.analysis.failures.known_errors import remedy_of_last_line
from allaboard.analysis.failures.signal_advice import windows_status
from allaboard.analysis.failures.time_limit_warning import ended_on_warning
from allaboard.analysis.parameter_servers import only_serves
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    sample_evaluator,
    sample_job,
    waiting_member,
)
from allaboard.facts.signal_name import signal_name


def check(view: JobView) -> Iterator[Claim]:
    for member in order_failures(view).own_failures:
        end = member.exit
        if (
            end is None
            or end.signal is not None
            or not _raised_nothing(member)
            or only_serves(member)
            or ended_on_warning(view, member)
        ):
            continue
        if not must_delay_report(view, member):
            ending_signal = _signal(end.code)
            remedy = remedy_of_last_line(end.last_line)
            crashed = crash_beside(view, member)
            claim = Claim(
                summary=f"{member.who.name} exited with code {end.code}"
                + (f" (128 + {ending_signal.value}: {ending_signal.name})" if ending_signal else "")
                + (f" ({status.name})" if (status := windows_status(end.code)) is not None else "")
                + (f" after step {member.step}" if member.step else "")
                + (f": {remedy.cause}" if remedy is not None and remedy.cause else "")
                + (": timeout(1) ended it, its time had run out" if _is_timeout(member) else ""),
                who=(member.who,),
                evidence=(
                    Evidence(f"exit code {end.code}, {_describe_probe(member)}", "wait status"),
                    Evidence(end.last_line or "it printed nothing", "its last line"),
                    *_describe_crash(crashed),
                ),
                fix=remedy.fix if remedy is not None else _fix(ending_signal, member),
                since=end.ended_at,
                # The one that crashed may have been the first, and this one its peer.
                certainty=Certainty.CERTAIN if crashed is None else Certainty.LIKELY,
                retry=Retry.NEVER if remedy is not None else Retry.HERE,
            )
            yield soften_evaluator_claim(view, member, claim)


def _describe_crash(crashed: Member | None) -> tuple[Evidence, ...]:
    if crashed is None or crashed.exit is None or crashed.exit.signal is None:
        return ()
    name = signal_name(crashed.exit.signal)
    text = f"{crashed.who.name} was killed by {name} at about the same time; it may be the cause"
    return (Evidence(text, f"wait status; read {crashed.log}"),)


def _describe_probe(member: Member) -> str:
    return "no exception was seen" if member.probed else "seen from outside only, without a probe"


def _signal(code: int | None) -> signal.Signals | None:
    """Return the signal that ended a program below the member, as shells and containers report it (128 +
    signal; POSIX 2.8.2), or None."""
    try:
        return signal.Signals((code or 0) - 128)
    except ValueError:
        return None


_LAST_TRACEBACK_LINE = re.compile(r"(\[rank\d+\]: ?)?[\w.]*(Error|Exception)(: |$)")
"""Matches the last line of a traceback."""


TIMEOUT_EXIT_CODE = 124
"""Exit code with which timeout(1) reports that the time had run out."""


def _fix(ending_signal: signal.Signals | None, member: Member) -> str:
    if _is_timeout(member):
        return (
            "give timeout(1) in the command more time, or none; if the training should have been done by "
            f"then, see where it was: read {member.log}"
        )
    status = windows_status(member.exit.code) if member.exit is not None else None
    if status is not None:
        return status.fix
    if ending_signal is None:
        if member.exit is not None and _LAST_TRACEBACK_LINE.match(member.exit.last_line):
            return (
                f"fix the error at the end of {member.log}; if that is not the cause, look for an "
                "except or a sys.excepthook that calls sys.exit or os._exit"
            )
        return f"look for sys.exit or os._exit; read {member.log}"
    if ending_signal in CRASH_SIGNALS:
        return f"native code in a program that it started crashed; read the end of {member.log}"
    killer = "the out-of-memory killer, a limit, " if ending_signal is signal.SIGKILL else ""
    return (
        f"a program that it started was ended by {ending_signal.name}, unless a program exits with "
        f"{ending_signal + 128} by itself: find out who sent it ({killer}a scheduler, a person); "
        f"read {member.log}"
    )


def _is_timeout(member: Member) -> bool:
    """Return True if the member is a program around the training, and exited as timeout(1) does."""
    is_wrapper = member.launcher or member.wraps_python
    return is_wrapper and member.exit is not None and member.exit.code == TIMEOUT_EXIT_CODE


def _raised_nothing(member: Member) -> bool:
    return member.raised is None or member.raised.type == "SystemExit"


_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "a worker exited with code 3": (
            sample_job(waiting_member(0), ended_member(1, code=3)),
            "worker 1 exited with code 3 after step 40",
        ),
        "exit code 137, with which a shell reports SIGKILL": (
            sample_job(waiting_member(0), ended_member(1, code=137)),
            "worker 1 exited with code 137 (128 + 9: SIGKILL) after step 40",
        ),
        "an evaluator exited with code 3": (
            sample_job(
                waiting_member(0),
                ended_member(1, code=3, member={"who": sample_evaluator(1), "step": 0}),
            ),
            "evaluator 0 exited with code 3; the training goes on without it",
        ),
        "the script does not take an argument that the launcher adds": (
            sample_job(
                waiting_member(0),
                ended_member(
                    1,
                    code=2,
                    last_line="train.py: error: unrecognized arguments: --local-rank=1",
                    member={"step": 0},
                ),
            ),
            "worker 1 exited with code 2: torch.distributed.launch gives the script --local-rank "
            "(--local_rank before PyTorch 2.0), which it does not take",
        ),
        "timeout(1) ended the command, since its time had run out": (
            sample_job(
                waiting_member(0),
                ended_member(1, code=124, member={"step": 0, "launcher": True, "probed": False}),
            ),
            "worker 1 exited with code 124: timeout(1) ended it, its time had run out",
        ),
        "a worker exited with code 1, and another was killed by SIGABRT at that moment": (
            sample_job(
                ended_member(0, ended_at=94.0, code=1), ended_member(1, ended_at=94.4, signal=6)
            ),
            "worker 0 exited with code 1 after step 40",
        ),
        "exit code 255, which is beyond 128 plus any signal": (
            sample_job(waiting_member(0), ended_member(1, code=255)),
            "worker 1 exited with code 255 after step 40",
        ),
    },
    silent_on={
        "a worker exited after SIGUSR1 and before the time limit, which EXIT013 reports": sample_job(
            waiting_member(0),
            ended_member(1, code=3),
            warned_at=94.0,
            warned_by=10,
            time_limit_at=150.0,
        ),
        "a worker exited with code 0": sample_job(waiting_member(0), ended_member(1, code=0)),
        "a worker raised an exception, which EXIT002 reports": sample_job(
            waiting_member(0), ended_member(1, raised=("KeyError", "x"))
        ),
        "a worker exited with code 1 because its peer had closed all its connections": sample_job(
            ended_member(0, ended_at=94.0, code=1),
            ended_member(
                1,
                signal=6,
                ended_at=94.4,
                last_line="what():  [enforce fail at /p/third_party/gloo/gloo/transport/tcp/loop.cc:212] "
                "nfds != -1. -1 vs -1",
            ),
        ),
        "a worker exited before init while another waits there, which JOIN003 reports": sample_job(
            arrived_member(0), ended_member(1, code=2, member=_EARLY), rolled_at=None
        ),
        "no worker has exited": sample_job(waiting_member(0), coming_member(1)),
    },
    drill=("exits-3", "rpc-actor-exits"),
    relations=Relations(begins_failure=True, bare_exit=True),
)
