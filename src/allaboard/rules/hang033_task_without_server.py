"""The process of a TensorFlow task lives, but nothing listens at its address, and the others use theirs.

## Why it matters
The chief and the workers reach a task at its address in the cluster. The server there may have ended while
its process goes on: it ran in a child process that was killed, or its script has left `server.join()`.
ParameterServerStrategy silently goes on with the other workers; whoever needs a parameter server waits or
fails.

## What to do
See in the last output of the task, and of its child processes, how the server ended: a traceback, or the
kernel's out-of-memory killer (`dmesg -T | grep -i oom`). Restart the task at the same address. Keep the
server in the main process, and end the script in `server.join()`.

A task that is still importing or loading its data, and has yet to start its server, looks the same: look at
the line that is named.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.parameter_servers import UNSERVED_NOTE, members_without_server
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import IDLE_CORES, find_stall, is_settled_stack
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import USER, ps_member, sample_stack, stalled_job, waiting_member

_ON_ITS_WAY = (Spot.IMPORT, Spot.UNKNOWN)
"""Places before the start of a server."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if view.ending or (stall is not None and stall.waiting):
        return  # whoever the others wait for in a collective is named for that
    for member in members_without_server(view):
        if (
            member.stack is not None
            and is_settled_stack(member.stack)
            and member.cpu < IDLE_CORES
            and classify_stack(member.stack) not in _ON_ITS_WAY
        ):
            yield _claim(view, member)


def _claim(view: JobView, member: Member) -> Claim:
    assert member.stack is not None
    frame, address = member.stack.main_frame, member.notes[UNSERVED_NOTE]
    return Claim(
        summary=f"{member.who.name} has no server: nothing listens at {address}, while its process is "
        f"{describe_wait(member.stack)} at {frame}",
        who=(member.who,),
        evidence=(
            Evidence(f"nothing listens at {address} of {member.who.name}", "TCP sockets"),
            Evidence("other tasks of the cluster are connected with each other", "TCP sockets"),
            Evidence(frame.text or str(frame), f"{frame.file}:{frame.line}"),
        ),
        fix="see in its last output, and that of its child processes, how its server ended, then restart it; "
        + command_on_host(view, member, f"pstree -ap {member.who.pid}"),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


_WATCHES = Frame("/home/u/train.py", 24, "watch", "time.sleep(3)")
_UNSERVED = {UNSERVED_NOTE: "10.0.0.5:2222"}
_IDLE = ps_member("worker", 1, stack=sample_stack(_WATCHES), notes=_UNSERVED, op=None, cpu=0.0)
_CHIEF = ps_member("chief", 0, number=3, stack=sample_stack(USER, moving=True), cpu=0.5)
_PS = ps_member("ps", 0)

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the child process in which a worker served was killed, and the worker sleeps": (
            stalled_job(_CHIEF, _IDLE, _PS),
            "worker 1 has no server: nothing listens at 10.0.0.5:2222, while its process is asleep at "
            "train.py:24 in watch",
        ),
    },
    silent_on={
        "its server listens": stalled_job(
            _CHIEF, ps_member("worker", 1, stack=sample_stack(_WATCHES), op=None, cpu=0.0), _PS
        ),
        "the task computes before it starts its server": stalled_job(
            _CHIEF,
            ps_member("worker", 1, stack=sample_stack(_WATCHES), notes=_UNSERVED, op=None, cpu=0.9),
            _PS,
        ),
        "its stack changes from sample to sample": stalled_job(
            _CHIEF,
            ps_member(
                "worker",
                1,
                stack=sample_stack(_WATCHES, moving=True),
                notes=_UNSERVED,
                op=None,
                cpu=0.0,
            ),
            _PS,
        ),
        "the others wait for it in a collective, which HANG005 reports": stalled_job(
            waiting_member(0), _IDLE
        ),
    },
    passes=True,
    unstaged="only `diagnose` of live processes looks who listens; tests/zoo/test_live_jobs.py stages it",
)
