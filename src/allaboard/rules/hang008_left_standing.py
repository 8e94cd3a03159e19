"""Workers are idle, and no other member waits for them in a collective.

## Why it matters
The other workers have exited, or all are blocked at different places: the job will never end by itself.
Possible causes are native code that sleeps while it holds the GIL (PyTorch's process group sometimes does so
while it is destroyed), a deadlock between two threads, or a server whose `join()` never returns.

## What to do
Look at the line that is named. `py-spy dump --native --pid PID` shows the native frames below it. If the
training is done and its results are saved, you can end the process by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_members
from allaboard.analysis.parameter_servers import TF2_CHIEF_CALL
from allaboard.analysis.roll_call.roll_call import has_live_rpc_member
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.dead_threads import (
    THREAD_RAISED_NOTE,
    dead_thread_advice,
    dead_thread_clause,
    dead_thread_evidence,
    ended_thread,
)
from allaboard.analysis.stalls.expected_pauses import is_in_short_pause
from allaboard.analysis.stalls.idle_chief import find_idle_chiefs
from allaboard.analysis.stalls.lock_kind import (
    describe_wait,
    left_threads_advice,
    left_threads_clause,
)
from allaboard.analysis.stalls.stall import find_stall, is_still
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Severity
from allaboard.facts.member import Member, Phase, Raised
from allaboard.facts.samples import (
    SERVING,
    USER,
    arrived_member,
    ended_member,
    ps_member,
    sample_declaration,
    sample_job,
    sample_member,
    sample_stack,
    waiting_member,
)

MIN_IDLE_S = 30.0
"""Seconds: an upload after the training may take that long, and shows neither CPU nor I/O."""
MIN_IDLE_WITH_CHILD_S = 300.0
"""The same (s) if a child process does the upload: what the child waits for elsewhere is not visible."""
IDLE_CORES = 0.02
"""Cores: on a full host, a process that exits slowly gets no more than a few hundredths of a core."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or stall.waiting or view.now - stalled_since(view) < MIN_IDLE_S:
        return
    if has_live_rpc_member(view) or any(_may_wait(view, m) for m in stall.absent):
        return
    if {m.event_key for m in stall.absent} <= {m.event_key for m in find_idle_chiefs(view)}:
        return  # PS017 reports the chief
    if stall.absent and all(_is_idle(m) for m in stall.absent):
        yield _claim(view, stall.absent)


def _may_wait(view: JobView, member: Member) -> bool:
    """Return True if it may still be waiting legitimately, or an exception explains the wait and is reported
    by itself."""
    idle_s = view.now - stalled_since(view)
    child = classify_stack(member.stack) is Spot.CHILD and idle_s < MIN_IDLE_WITH_CHILD_S
    return member.raised is not None or child or is_in_short_pause(view, member)


def _is_idle(member: Member) -> bool:
    idle = is_still(member) and member.cpu < IDLE_CORES and member.os_state == "S"
    return idle and classify_stack(member.stack) not in (Spot.DATA, Spot.FILE_LOCK, Spot.INPUT)


def _claim(view: JobView, idle_members: tuple[Member, ...]) -> Claim:
    # Members in their shutdown wait for the others, if any of those still run their script.
    shutting_down = tuple(m for m in idle_members if classify_stack(m.stack) is Spot.LEAVING)
    if len(shutting_down) < len(idle_members):
        idle_members = tuple(m for m in idle_members if m not in shutting_down)
    else:
        shutting_down = ()
    places = [(m, m.stack.main_frame) for m in idle_members if m.stack is not None]
    subject = name_members(m for m, _ in places)
    verb = "are" if len(places) > 1 else "is"
    pronoun = "them" if len(places) > 1 else "it"
    while_others_exit = (
        f"while {_names(shutting_down)} shut{'' if len(shutting_down) > 1 else 's'} down"
    )
    # Name a member one of whose threads has ended first: it is the likely cause.
    places.sort(key=lambda pair: ended_thread(pair[0]) is None)
    first_member, frame = places[0]
    exited = [m for m in view.members if m.exit is not None and not m.launcher]
    after_exits = (
        f", after {len(exited)} other{'s have' if len(exited) > 1 else ' has'} exited"
        if exited
        else ""
    )
    threads_clause = left_threads_clause(first_member)
    threads_clause = f", {threads_clause}," if threads_clause else ""
    native_stack = command_on_host(
        view, first_member, f"py-spy dump --native --pid {first_member.who.pid}"
    )
    return Claim(
        summary=f"{subject} {verb} idle at {frame}{_child_clause(first_member)}"
        f"{threads_clause} "
        + (
            while_others_exit
            if shutting_down
            else _waiting_in_init(view)
            or _waiting_for_chief(idle_members)
            or f"and no other member waits for {pronoun}"
        )
        + after_exits
        + dead_thread_clause(first_member),
        who=tuple(m.who for m in idle_members),
        evidence=tuple(
            Evidence(
                f"{m.who.name}: idle for {view.now - stalled_since(view):.0f} s, "
                f"{describe_wait(m.stack)}: {member_frame.text or member_frame}",
                f"{member_frame.file}:{member_frame.line}",
            )
            for m, member_frame in places[:3]
        )
        + tuple(e for m, _ in places[:3] for e in dead_thread_evidence(m)),
        fix=dead_thread_advice(first_member, frame)
        or left_threads_advice(first_member)
        or _advise_data_service(first_member, frame)
        or _advise_own_line(first_member, frame, native_stack)
        or native_stack,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=stalled_since(view),
    )


def _advise_data_service(member: Member, frame: Frame) -> str:
    """Return advice if it waits for a tf.data service, which is not part of the job, else ""."""
    if classify_stack(member.stack) is not Spot.DATA_SERVICE:
        return ""
    return (
        "check that a DispatchServer of the tf.data service listens at the address given at "
        f"{frame.file}:{frame.line}: the worker asks there forever"
    )


def _waiting_in_init(view: JobView) -> str:
    """Return which members wait in init, in a job that joins again, or ""."""
    at_init = [m for m in view.alive if m.phase in (Phase.ARRIVED, Phase.JOINING)]
    return (
        f"while {name_members(at_init)} {conjugate_verb('wait', at_init)} in init"
        if at_init
        else ""
    )


def _waiting_for_chief(idle_members: tuple[Member, ...]) -> str:
    """Return that the workers wait for what TensorFlow 2's chief sends them, if it is one of these, or ""."""
    calls = {m.declared.call for m in idle_members if m.declared is not None}
    return (
        "and schedules nothing, so its workers have nothing to do"
        if TF2_CHIEF_CALL in calls
        else ""
    )


def _advise_own_line(member: Member, frame: Frame, command: str) -> str:
    """Return where to look for what a call in the user's own code waits for, else ""."""
    is_own = member.stack is not None and member.stack.frames[0].is_user
    return (
        f"see what {frame.function} waits for at {frame.file}:{frame.line}; {command}"
        if is_own
        else ""
    )


def _names(members: tuple[Member, ...]) -> str:
    return ", ".join(m.who.name for m in members)


def _child_clause(member: Member) -> str:
    """Return the child process that it waits for, or ""."""
    if member.stack is None or not member.stack.children:
        return ""
    pid, command = member.stack.children[0]
    return (
        f", waiting for its child process {pid} ({command.partition(' ')[0].rpartition('/')[2]}),"
    )


_DOWN = Frame("/v/lib/python3.11/site-packages/jax/_src/distributed.py", 199, "shutdown")
_WAIT = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
_UPLOADS = msgspec.structs.replace(
    sample_stack(_WAIT, USER), children=((4711, "/usr/bin/rsync -a out"),)
)
_LOCK = Frame("/usr/lib/python3.11/threading.py", 327, "wait")
_QUEUE = Frame("/usr/lib/python3.11/queue.py", 171, "get")
_KEPT = msgspec.structs.replace(
    sample_stack(Frame("/usr/lib/python3.11/threading.py", 1583, "_shutdown")),
    other_thread_frames=(Frame("/home/u/log.py", 12, "run", "row = self.q.get()"),),
)
_RAISED = {THREAD_RAISED_NOTE: "RuntimeError: no at /home/u/train.py:12 in run"}
_END = Frame("/home/u/train.py", 24, "main", "train(moments)")
_LONG = {"progress_at": 60.0}
_TF = "/v/lib/python3.11/site-packages/tensorflow/python/"
_ASKS = sample_stack(
    Frame(_TF + "eager/execute.py", 53, "quick_execute"),
    Frame(_TF + "data/experimental/ops/data_service_ops.py", 885, "_register_dataset"),
    USER,
)
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the last worker is idle and never exits": (
            sample_job(
                ended_member(0, code=0), sample_member(1, stack=sample_stack(_END)), **_LONG
            ),
            "worker 1 is idle at train.py:24 in main and no other member waits for it, after 1 other has "
            "exited",
        ),
        "a thread that is not a daemon keeps a worker from exiting": (
            sample_job(ended_member(0, code=0), sample_member(1, stack=_KEPT), **_LONG),
            "worker 1 is idle at threading.py:1583 in _shutdown, at its end, and waits for its other threads "
            "(log.py:12 in run), and no other member waits for it, after 1 other has exited",
        ),
        "a chief of TensorFlow 2 that schedules nothing for its workers": (
            sample_job(
                sample_member(
                    0,
                    declared=sample_declaration(0, framework="tensorflow", call=TF2_CHIEF_CALL),
                    stack=sample_stack(_END),
                ),
                ps_member("ps", 0),
                **_LONG,
            ),
            "worker 0 is idle at train.py:24 in main and schedules nothing, so its workers have nothing to "
            "do",
        ),
        "a worker is idle while the others are back in init": (
            sample_job(
                arrived_member(0),
                sample_member(1, stack=sample_stack(_END)),
                arrived_member(2),
                **_LONG,
            ),
            "worker 1 is idle at train.py:24 in main while worker 0, worker 2 wait in init",
        ),
        "all workers wait for queues of their own, and a thread of one has ended": (
            sample_job(
                sample_member(0, stack=sample_stack(_LOCK, _QUEUE, USER)),
                sample_member(1, stack=sample_stack(_LOCK, _QUEUE, USER), notes=_RAISED),
                **_LONG,
            ),
            "worker 0, worker 1 are idle at train.py:41 in train and no other member waits for them, "
            "after a thread of worker 1 raised RuntimeError: no at train.py:12 in run",
        ),
        "one worker never exits, and the other waits for it in its framework's shutdown": (
            sample_job(
                sample_member(0, stack=sample_stack(_DOWN)),
                sample_member(1, stack=sample_stack(_END)),
                **_LONG,
            ),
            "worker 1 is idle at train.py:24 in main while worker 0 shuts down",
        ),
        "all workers ask a `tf.data` service that does not answer": (
            sample_job(*(sample_member(r, stack=_ASKS) for r in range(2)), **_LONG),
            "worker 0, worker 1 are idle at train.py:41 in train and no other member waits for them",
        ),
        "the last worker has waited for five minutes for a child process": (
            sample_job(
                ended_member(0, code=0),
                sample_member(1, stack=_UPLOADS),
                progress_at=90.0,
                now=400.0,
            ),
            "worker 1 is idle at train.py:41 in train, waiting for its child process 4711 (rsync), and no "
            "other member waits for it, after 1 other has exited",
        ),
    },
    silent_on={
        "a chief of TensorFlow 2 whose workers all serve, which PS017 reports": sample_job(
            ps_member(
                "chief",
                0,
                number=3,
                declared=sample_declaration(
                    3, framework="tensorflow", call=TF2_CHIEF_CALL, job="chief", index=0
                ),
                stack=sample_stack(_END),
            ),
            ps_member("worker", 0, op=SERVING),
            ps_member("ps", 0),
            **_LONG,
        ),
        "members of an RPC job, which may serve others while they are idle": sample_job(
            *(
                sample_member(
                    r, declared=sample_declaration(r, call="init_rpc"), stack=sample_stack(_END)
                )
                for r in (0, 1)
            ),
            **_LONG,
        ),
        "a host that runs only a parameter server, which is idle while it serves": sample_job(
            ps_member("ps", 0, stack=sample_stack(USER)), now=200.0, progress_at=100.0
        ),
        "a child process that has been uploading for a minute": sample_job(
            sample_member(0, stack=sample_stack(_DOWN)),
            sample_member(1, stack=_UPLOADS),
            progress_at=40.0,
        ),
        "a worker that has failed, which is reported, waits in its shutdown": sample_job(
            sample_member(
                0,
                stack=sample_stack(_DOWN),
                raised=Raised(type="KeyError", message="11", raised_at=58.0),
            ),
            sample_member(1, stack=sample_stack(_END)),
            **_LONG,
        ),
        "the last worker has been idle for 20 seconds": sample_job(
            ended_member(0, code=0), sample_member(1, stack=sample_stack(_END)), progress_at=80.0
        ),
        "the last worker still computes": sample_job(
            ended_member(0, code=0), sample_member(1, stack=sample_stack(_END), cpu=0.9), **_LONG
        ),
        "the last worker exits slowly on an overloaded host": sample_job(
            ended_member(0, code=0), sample_member(1, stack=sample_stack(_END), cpu=0.05), **_LONG
        ),
        "the last worker still writes to disk": sample_job(
            ended_member(0, code=0), sample_member(1, stack=sample_stack(_END), io=1e7), **_LONG
        ),
        "another worker waits in a collective for the idle one": sample_job(
            waiting_member(0), sample_member(1, stack=sample_stack(_END, USER)), **_LONG
        ),
    },
    passes=True,
    relations=Relations(follows_from=("HANG032",)),
    drill=("never-ends",),
)
