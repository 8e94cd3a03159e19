"""A worker stays at one place in its code while the others wait for it.

## Why it matters
A loop that never ends, a condition that never becomes true, retries without a limit: the process is alive,
perhaps at full CPU, and its peers block in their next collective until a timeout that names no rank.

The wait for an idle child process is reported only after a minute, since it may take long for a good reason;
the same holds for a long library call (HANG025) and a checkpoint that is retried again and again (HANG026).

## What to do
Look at the line that is named. `py-spy dump --locals --pid PID` shows what the worker is doing there.

A long computation on one rank only (a metric, an evaluation in plain Python) looks the same from outside. In
that case, give the others a longer timeout, or do the computation after the barrier. If the function's name
shows what it does (`evaluate`, `compute_metrics`, `rollout`, `generate`), the status is "waiting" for a
minute, and this finding follows only after that.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, name_first_members
from allaboard.analysis.stacks.autograph_frames import autograph_evidence
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_clause
from allaboard.analysis.stalls.child_process import (
    awaits_child,
    child_command,
    child_evidence,
    describe_child,
)
from allaboard.analysis.stalls.dead_threads import dead_thread_advice, dead_thread_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.analysis.stalls.stuck_members import (
    StuckMember,
    StuckReason,
    find_stuck_members,
    is_idle,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity, Spent
from allaboard.facts.member import Exit, Member, Op
from allaboard.facts.samples import (
    REDUCE,
    USER,
    ps_member,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)


def check(view: JobView) -> Iterator[Claim]:
    alike: dict[object, list[StuckMember]] = {}
    for stuck in find_stuck_members(view):
        if stuck.reason is StuckReason.CODE:
            # Who waits at one line for one thing has one cause.
            end = awaited_end_clause(stuck.member) if is_idle(stuck.member) else ""
            end_and_line = (
                (end, stuck.member.stack.main_frame) if end and stuck.member.stack else None
            )
            alike.setdefault(end_and_line or stuck.member.event_key, []).append(stuck)
    for members in alike.values():
        yield _claim(view, tuple(s.member for s in members), members[0].waiting)


def _claim(view: JobView, members: tuple[Member, ...], peers_evidence: Evidence) -> Claim:
    member = members[0]
    assert member.stack is not None
    frame = member.stack.main_frame
    # From outside, a long call into native code looks like an endless loop.
    working = not is_idle(member)
    busy = f"{member.cpu * 100:.0f} % of a core" if member.cpu > 0.05 else "no CPU"
    child = f"waiting for {describe_child(member)} " if awaits_child(member) else ""
    if not child and not working and (end := awaited_end_clause(member)):
        child = f"{end} "
    verb = "stays" if working else "are stuck" if members[1:] else "is stuck"
    samples = f"{member.stack.samples} stack samples over {member.stack.span:.1f} s, {busy}"
    return Claim(
        summary=f"{name_first_members(members)} {verb} at {frame} "
        f"{'with its CPU busy ' if working else ''}{child}while the others wait for "
        + ("them" if members[1:] else "it"),
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(f"at the same place in {samples}", member.stack.by),
            *child_evidence(member),
            *autograph_evidence(member),
            *dead_thread_evidence(member),
            peers_evidence,
            Evidence(frame.text or "source not readable", f"{frame.file}:{frame.line}"),
        ),
        fix=child_command(view, member)
        or (is_idle(member) and dead_thread_advice(member, frame))
        or (is_idle(member) and awaited_end_advice((member,)))
        or f"see what {frame.function} {'does' if working else 'waits for'} at {frame.file}:{frame.line}; "
        + command_on_host(view, member, f"py-spy dump --locals --pid {member.who.pid}"),
        severity=Severity.WARNING if working else Severity.ERROR,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


_OPEN = Frame("/home/u/train.py", 33, "read_labels", "with open(path) as f:")
_PRINTS = Frame("/home/u/train.py", 33, "report", "print(step, loss)")
_SPIN = Frame("/home/u/train.py", 33, "wait_for_flag", "while not flag.is_set():")
_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
_CHILD = msgspec.structs.replace(
    sample_stack(_WAIT, USER), children=((4711, "/usr/bin/unzip data.zip"),)
)
_KEY = msgspec.structs.replace(
    sample_stack(Frame("/home/u/train.py", 33, "wait_for_eval", "store.wait(['eval'])"), USER),
    awaited_end="an answer from 127.0.0.1:29500",
)
_RUN = Op("Session.run", 41, 90.0)
_IN_RUN = ps_member("worker", 0, op=_RUN, stack=sample_stack(USER))
_SYNC = {"notes": {"synchronous": "2 of 2"}}
_METRIC = Frame("/home/u/train.py", 33, "compute_metrics", "total += score(a, b)")
_CLOSE = Frame("/v/site-packages/tensorflow/python/client/session.py", 2001, "close")
_FUNCTION = Frame("/v/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
_READS = Frame("/home/u/train.py", 29, "rows", "open(path).read()")
_FED = msgspec.structs.replace(sample_stack(_FUNCTION, USER), fed_by=(_READS,))
_IN_FUNCTION = Op("tf.function epoch", 41, 90.0)
_SYSTEM = Frame("/home/u/train.py", 9, "fetch", "os.system('rsync -a data: .')")


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a worker opens a named pipe that no process has opened at the other end": (
            stalled_job(
                waiting_member(0),
                sample_member(
                    1,
                    stack=msgspec.structs.replace(
                        sample_stack(_OPEN),
                        awaited_end="somebody to open the other end of the named pipe /tmp/labels",
                    ),
                ),
            ),
            "worker 1 is stuck at train.py:33 in read_labels waiting for somebody to open the other end of "
            "the named pipe /tmp/labels while the others wait for it",
        ),
        "a worker prints into a full pipe that its reader does not read": (
            stalled_job(
                waiting_member(0),
                sample_member(
                    1,
                    stack=msgspec.structs.replace(
                        sample_stack(_PRINTS),
                        awaited_end="pid 4711 (less) to read the full pipe of its standard output",
                    ),
                ),
            ),
            "worker 1 is stuck at train.py:33 in report waiting for pid 4711 (less) to read the full pipe of "
            "its standard output while the others wait for it",
        ),
        "a worker in an endless loop at full CPU": (
            example_awaited(sample_member(1, stack=sample_stack(_SPIN, USER), cpu=1.0)),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy while the others wait for it",
        ),
        "an idle child process, awaited by a program that is installed as a package": (
            example_awaited(
                sample_member(
                    1,
                    stack=msgspec.structs.replace(sample_stack(_WAIT), children=((4711, "unzip"),)),
                ),
                progress_at=30.0,
            ),
            "worker 1 is stuck at subprocess.py:1264 in wait waiting for its child process 4711 (unzip) "
            "while the others wait for it",
        ),
        "`compute_metrics` has been computing for more than a minute": (
            example_awaited(
                sample_member(1, stack=sample_stack(_METRIC, USER), cpu=1.0), progress_at=30.0
            ),
            "worker 1 stays at train.py:33 in compute_metrics with its CPU busy while the others wait for it",
        ),
        "a worker is idle, without any CPU, in `compute_metrics`": (
            example_awaited(sample_member(1, stack=sample_stack(_METRIC, USER))),
            "worker 1 is stuck at train.py:33 in compute_metrics while the others wait for it",
        ),
        "an endless loop in a job whose steps cannot be counted": (
            example_awaited(
                sample_member(1, stack=sample_stack(_SPIN, USER), cpu=1.0, step=0, ops=40)
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy while the others wait for it",
        ),
        "a worker waits for a key of a store that nobody has set": (
            example_awaited(sample_member(1, stack=_KEY)),
            "worker 1 is stuck at train.py:33 in wait_for_eval waiting for a key of the store at "
            "127.0.0.1:29500 that nobody has set while the others wait for it",
        ),
        "two workers wait for one key of a store": (
            stalled_job(
                waiting_member(0), sample_member(1, stack=_KEY), sample_member(2, stack=_KEY)
            ),
            "worker 1, worker 2 are stuck at train.py:33 in wait_for_eval waiting for a key of the store at "
            "127.0.0.1:29500 that nobody has set while the others wait for them",
        ),
        "an endless loop that gets little CPU": (
            example_awaited(
                sample_member(1, stack=sample_stack(_SPIN, USER), cpu=0.13, os_state="R")
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy while the others wait for it",
        ),
        "a worker has waited for more than a minute for an idle child process": (
            example_awaited(sample_member(1, stack=_CHILD), progress_at=30.0),
            "worker 1 is stuck at train.py:41 in train waiting for its child process 4711 (unzip data.zip) "
            "while the others wait for it",
        ),
        "a worker has waited for more than a minute in `os.system`": (
            example_awaited(sample_member(1, stack=sample_stack(_SYSTEM)), progress_at=30.0),
            "worker 1 is stuck at train.py:9 in fetch waiting for a child process while the others "
            "wait for it",
        ),
        "a worker is idle in the generator that feeds its `tf.function`": (
            stalled_job(
                sample_member(0, stack=sample_stack(_FUNCTION, USER), op=_IN_FUNCTION),
                sample_member(1, stack=_FED, op=_IN_FUNCTION),
            ),
            "worker 1 is stuck at train.py:29 in rows while the others wait for it",
        ),
        "an endless loop in a synchronous job with parameter servers": (
            stalled_job(
                msgspec.structs.replace(_IN_RUN, **_SYNC),
                ps_member("worker", 1, stack=sample_stack(_SPIN, USER), cpu=1.0, **_SYNC),
                ps_member("ps", 0),
            ),
            "worker 1 stays at train.py:33 in wait_for_flag with its CPU busy while the others wait for it",
        ),
    },
    silent_on={
        "a worker has been in its evaluation for 10 seconds": example_awaited(
            sample_member(
                1, stack=sample_stack(_SPIN, USER), cpu=1.0, spent=Spent(now="evaluation")
            )
        ),
        "`compute_metrics` has been computing for less than a minute": example_awaited(
            sample_member(1, stack=sample_stack(_METRIC, USER), cpu=1.0), progress_at=50.0
        ),
        "the child process for which a worker waits uses the CPU": example_awaited(
            sample_member(1, stack=_CHILD, cpu=0.9)
        ),
        "a generator that feeds a `tf.function` still makes a batch now and then": stalled_job(
            sample_member(0, stack=sample_stack(_FUNCTION, USER), op=_IN_FUNCTION),
            sample_member(1, stack=_FED, op=_IN_FUNCTION, cpu=0.06),
        ),
        "a worker has waited for an idle child process for less than a minute": example_awaited(
            sample_member(1, stack=_CHILD), progress_at=50.0
        ),
        "the child process for which a worker waits uploads data": example_awaited(
            sample_member(1, stack=_CHILD, traffic=3e5), progress_at=30.0
        ),
        "a worker that downloads data in its own code": example_awaited(
            sample_member(1, stack=sample_stack(_SPIN, USER), traffic=4e4)
        ),
        "a worker in uninterruptible sleep in the kernel (state D)": example_awaited(
            sample_member(1, stack=sample_stack(_SYSTEM), os_state="D")
        ),
        "a worker has been preparing its first step for less than a minute": example_awaited(
            sample_member(1, stack=sample_stack(_SPIN, USER), cpu=1.0, step=0, ops=3),
            progress_at=50.0,
        ),
        "a loop of which only four stack samples were taken": example_awaited(
            sample_member(1, stack=sample_stack(_SPIN, USER, samples=4), cpu=1.0)
        ),
        "a worker whose stack changes from sample to sample": example_awaited(
            sample_member(1, stack=sample_stack(_SPIN, USER, moving=True), cpu=1.0)
        ),
        "a worker whose parameter server has died closes its session": stalled_job(
            _IN_RUN,
            ps_member("worker", 1, stack=sample_stack(_CLOSE, USER)),
            ps_member("ps", 0, exit=Exit(ended_at=88.0, signal=9)),
        ),
        "a worker whose parameter server has died retries in its own code": stalled_job(
            _IN_RUN,
            ps_member("worker", 1, stack=sample_stack(USER)),
            ps_member("ps", 0, exit=Exit(ended_at=88.0, signal=9)),
        ),
        "a worker whose parameter server is stopped": stalled_job(
            msgspec.structs.replace(_IN_RUN, **_SYNC),
            ps_member("worker", 1, stack=sample_stack(USER), **_SYNC),
            ps_member("ps", 0, os_state="T"),
        ),
        "an idle worker of an asynchronous job, for which the others do not wait": stalled_job(
            _IN_RUN, ps_member("worker", 1, stack=sample_stack(USER)), ps_member("ps", 0)
        ),
        "a worker closes its TensorFlow session, whose server is on another host": example_awaited(
            sample_member(1, stack=sample_stack(_CLOSE, USER))
        ),
        "all workers are in the same collective": example_awaited(
            sample_member(1, stack=sample_stack(REDUCE, USER))
        ),
    },
    passes=True,
    drill=(
        "stuck-in-python",
        "polls-for-a-file",
        "tf-stuck-in-python",
        "jax-stuck-in-python",
        "stuck-in-child",
    ),
)
