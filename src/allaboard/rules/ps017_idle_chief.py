"""The chief of TensorFlow 2 stands still in the program's own code, and its workers have no work.

## Why it matters
With ParameterServerStrategy the chief hands out every step. While it sleeps, or waits for a lock, a service
or a file, the workers and servers are up, idle and without a message.

## What to do
Look at the line that is named: `py-spy dump --pid PID`. A pause of the chief that is meant (an upload, an
evaluation) can run in a thread, so that it goes on to hand out work.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.parameter_servers import TF2_CHIEF_CALL
from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_evidence
from allaboard.analysis.stalls.idle_chief import find_idle_chiefs, serving_workers
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member, Severity
from allaboard.facts.samples import (
    SERVING,
    ps_member,
    sample_declaration,
    sample_stack,
    stalled_job,
)


def check(view: JobView) -> Iterator[Claim]:
    for chief in find_idle_chiefs(view):
        yield _claim(view, chief, serving_workers(view))


def _claim(view: JobView, chief: Member, workers: tuple[Member, ...]) -> Claim:
    assert chief.stack is not None
    frame = chief.stack.main_frame
    return Claim(
        summary=f"{chief.who.name} is {describe_wait(chief.stack)} at {frame}, and hands out no work to "
        f"{name_members(workers)}",
        who=(chief.who,),
        evidence=(
            Evidence(
                f"no progress for {view.now - view.progress_at:.0f} s",
                "black box" if chief.probed else "stacks, TCP sockets",
            ),
            *awaited_end_evidence((chief,)),
            Evidence(frame.text or str(frame), f"{frame.file}:{frame.line}"),
            Evidence(f"{name_members(workers)}: idle in Server.join", "stacks, /proc"),
        ),
        fix=awaited_end_advice((chief,))
        or command_on_host(view, chief, f"py-spy dump --pid {chief.who.pid}")
        + f"   # then {frame.file}:{frame.line}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_SLEEP = Frame("/home/u/train.py", 20, "upload", "time.sleep(600)")
_DECLARED = sample_declaration(3, framework="tensorflow", call=TF2_CHIEF_CALL, job="chief", index=0)
_CHIEF = ps_member("chief", 0, number=3, declared=_DECLARED, stack=sample_stack(_SLEEP))
_WORKER = ps_member("worker", 0, op=SERVING)
_PS = ps_member("ps", 0)
_LONG = {"progress_at": 80.0}

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the chief has been asleep for 20 seconds": (
            stalled_job(_CHIEF, _WORKER, _PS, **_LONG),
            "chief 0 is asleep at train.py:20 in upload, and hands out no work to worker 0",
        )
    },
    silent_on={
        "the chief has been asleep for 10 seconds": stalled_job(_CHIEF, _WORKER, _PS),
        "the chief computes": stalled_job(
            ps_member(
                "chief", 0, number=3, declared=_DECLARED, stack=sample_stack(_SLEEP), cpu=0.3
            ),
            _WORKER,
            _PS,
            **_LONG,
        ),
        "a worker still computes": stalled_job(
            _CHIEF, ps_member("worker", 0, op=SERVING, cpu=0.5), _PS, **_LONG
        ),
        "the chief's stack changes from sample to sample": stalled_job(
            ps_member(
                "chief", 0, number=3, declared=_DECLARED, stack=sample_stack(_SLEEP, moving=True)
            ),
            _WORKER,
            _PS,
            **_LONG,
        ),
    },
    passes=True,
    unstaged="the start of a TensorFlow 2 cluster takes half a minute; the examples are the pictures of one",
)
