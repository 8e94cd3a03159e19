"""A process that the script had started failed, but the script exited with code 0.

## Why it matters
`Process.join()` of multiprocessing returns when the process has ended, however it ended. Its traceback is
printed, and nothing else happens: if the script does not read `exitcode`, it exits with code 0, and the
launcher, the batch system and every script that reads the exit code consider the job successful.

Only the first process that failed since the last one was started is known, and only if no worker failed.
A process that the script ended itself (`terminate`, `kill`) is not meant, nor one whose exit code the script
has read: it knows of the failure, and has gone on.

## What to do
Read its traceback in the output. Let the script fail with it: compare `p.exitcode` with 0 after `p.join()`,
or start the processes with `torch.multiprocessing.spawn` or `concurrent.futures`, which raise its exception.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.killed_child import FAILED_PROCESS_NOTE, noted_failure
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.samples import ended_member, sample_job, sample_member


def check(view: JobView) -> Iterator[Claim]:
    if not view.ended or order_failures(view).root_failures:
        return
    for member in view.members:
        end = member.exit
        exited_well = end is not None and end.code == 0 and not end.ours
        failed = noted_failure(member) if exited_well else None
        if failed is not None:
            yield _claim(member, *failed)


def _claim(member: Member, pid: int, code: int) -> Claim:
    subject = "the script" if member.launcher else member.who.name
    return Claim(
        summary=f"{subject} exited with code 0, but a process that it had started (pid {pid}) had "
        f"failed with exit code {code}",
        who=(member.who,),
        evidence=(Evidence(f"exit code {code} of pid {pid}", "wait status"),),
        fix=f"see its traceback in {member.log}; and let the script fail with it: test p.exitcode after "
        "p.join(), or use torch.multiprocessing.spawn or concurrent.futures, which raise its exception",
        severity=Severity.WARNING,
        certainty=Certainty.CERTAIN,
        since=member.exit.ended_at if member.exit is not None else None,
    )


_FAILED = {"notes": {FAILED_PROCESS_NOTE: "4711 1"}}

RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "an actor raised an exception, and the script that joined it exited with code 0": (
            sample_job(ended_member(0, code=0, member=_FAILED), ended=True),
            "worker 0 exited with code 0, but a process that it had started (pid 4711) had failed with exit "
            "code 1",
        ),
        "the process was about to become a rank, and is known, too": (
            sample_job(
                ended_member(0, code=0, member=_FAILED | {"launcher": True}),
                ended_member(1, code=None),
                ended=True,
            ),
            "the script exited with code 0, but a process that it had started (pid 4711) had failed with "
            "exit code 1",
        ),
    },
    silent_on={
        "another process was started in its place, or the script has read its exit code": sample_job(
            ended_member(0, code=0, member={"notes": {FAILED_PROCESS_NOTE: ""}}), ended=True
        ),
        "the script failed with it": sample_job(
            ended_member(0, code=1, member=_FAILED), ended=True
        ),
        "the script still runs, and may yet read the exit code": sample_job(
            sample_member(0, **_FAILED)
        ),
        "another worker failed, which its own finding reports": sample_job(
            ended_member(0, code=0, member=_FAILED), ended_member(1, signal=9), ended=True
        ),
    },
    unstaged="tests/zoo/test_failed_process.py runs a script one of whose processes fails",
)
