"""A worker waits for a file lock while the others wait for it.

## Why it matters
Caches of compilers, tokenizers and data sets are protected by lock files. If the holder died on another host,
or itself waits in a collective, it silently blocks this rank and thereby the job.

## What to do
Look at the holder, if the kernel knows it: `ps -fp PID`, or `lslocks`. If the holder is a rank of this job,
it holds the lock across a collective: release the lock before the collective. A lock that a dead host left on
a network file system must be removed by hand. A process that opens a file twice and locks it twice waits for
itself: `flock` locks the open file, not the process. A database in a file (SQLite) is locked from the first
write to the `commit()`: commit before a collective.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import command_on_host, name_members
from allaboard.analysis.stacks.example_awaited import example_awaited
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.expected_pauses import is_in_short_pause
from allaboard.analysis.stalls.lock_polls import find_lock_wait
from allaboard.analysis.stalls.stall import Stall, find_stall, is_still, waiting_evidence
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, LockWait, Severity, Spent
from allaboard.facts.member import Member
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or not stall.waiting:
        return
    for absent_member in stall.absent:
        wait = find_lock_wait(view, absent_member)
        if (
            absent_member.is_stopped
            or not _waits_for_lock(view, absent_member, wait)
            or _holder_is_active(stall, absent_member, wait)
        ):
            continue
        yield _claim(view, stall, absent_member, wait)


def _waits_for_lock(view: JobView, member: Member, wait: LockWait | None) -> bool:
    """Return True if the member waits for a file lock, as far as can be seen: the kernel knows which process
    waits, but not which of its threads."""
    if classify_stack(member.stack) is Spot.FILE_LOCK:
        return True
    return wait is not None and is_still(member) and not is_in_short_pause(view, member)


def _is_deadlock(stall: Stall, member: Member, wait: LockWait | None) -> bool:
    """Return True if every holder of the lock waits for this member, or is this member: then none can release
    it."""
    if wait is None or wait.polls or classify_stack(member.stack) is not Spot.FILE_LOCK:
        return False
    blocked_pids = {m.who.pid for m in (*stall.waiting, member) if m.who.host == member.who.host}
    return bool(wait.holders) and blocked_pids.issuperset(wait.holders)


def _holder_is_active(stall: Stall, member: Member, wait: LockWait | None) -> bool:
    """Return True if a possible holder of the lock is another member that is active: it will release the
    lock."""
    possible_holders = [
        m for m in stall.absent if m is not member and m.who.host == member.who.host
    ]
    if wait is not None:
        possible_holders = [m for m in possible_holders if m.who.pid in wait.holders]
    return any(
        not is_still(m) and classify_stack(m.stack) is not Spot.FILE_LOCK for m in possible_holders
    )


def _claim(view: JobView, stall: Stall, member: Member, wait: LockWait | None) -> Claim:
    user_frame = member.stack.user if member.stack is not None else None
    path = wait.path if wait is not None else ""
    holders = ", ".join(map(str, wait.holders)) if wait is not None else ""
    evidence = [waiting_evidence(stall)]
    holds_it_itself = wait is not None and wait.holders == (member.who.pid,)
    if wait is not None:
        on = f" of {member.who.host}" if member.is_on_other_host else ""
        evidence.insert(
            0,
            Evidence(
                f"{path or 'a file'}: held by pid {holders}{_member_holders(stall, member, wait)}",
                "/proc/locks" + on,
            ),
        )
    if user_frame is not None:
        evidence.append(Evidence(user_frame.text, f"{user_frame.file}:{user_frame.line}"))
    itself = ", which it holds itself through another descriptor" if holds_it_itself else ""
    waiting_holders = _waiting_holders(stall, member, wait)
    held_by = f", held by {name_members(waiting_holders)}," if waiting_holders else ""
    if holds_it_itself:
        fix = _advise_own_lock(member, path, user_frame)
    elif waiting_holders:
        fix = _advise_release(member, waiting_holders[0])
    else:
        fix = command_on_host(view, member, _holder_command(holders))
    return Claim(
        summary=f"{member.who.name} waits for the file lock {path}".rstrip()
        + (itself or held_by)
        + (f" at {user_frame}" if user_frame is not None else "")
        + ("; the holder and the others wait for it" if held_by else "; the others wait for it"),
        who=(member.who,),
        evidence=tuple(evidence),
        fix=fix,
        severity=Severity.WARNING if _is_held_by_absent(stall, member, wait) else Severity.ERROR,
        certainty=Certainty.CERTAIN if _is_deadlock(stall, member, wait) else Certainty.LIKELY,
        since=stalled_since(view),
    )


def _waiting_holders(stall: Stall, member: Member, wait: LockWait | None) -> list[Member]:
    """Return the holders of the lock that wait for this member in a collective."""
    pids = wait.holders if wait is not None else ()
    return [m for m in stall.waiting if m.who.host == member.who.host and m.who.pid in pids]


def _is_held_by_absent(stall: Stall, member: Member, wait: LockWait | None) -> bool:
    """Return True if another member holds the lock that waits for nobody: it may be at work, for example at a
    download, and is reported by itself if it is not."""
    pids = wait.holders if wait is not None else ()
    return any(
        m.who.pid in pids and m is not member and m.who.host == member.who.host
        for m in stall.absent
    )


def _member_holders(stall: Stall, member: Member, wait: LockWait) -> str:
    """Return the names of the holders that are members, in brackets, or ""."""
    members = [m for m in (*stall.waiting, *stall.absent) if m.who.host == member.who.host]
    holders = [m for m in members if m.who.pid in wait.holders and m is not member]
    return f" ({name_members(holders)})" if holders else ""


def _holder_command(holders: str) -> str:
    return f"ps -fp {holders.replace(' ', '')}   # the holder of the lock" if holders else "lslocks"


def _advise_release(member: Member, holder: Member) -> str:
    """Return advice for a lock that a rank holds across a collective."""
    frame = holder.stack.user if holder.stack is not None else None
    location = f" at {frame.file}:{frame.line}" if frame is not None else ""
    return (
        f"let {holder.who.name} release the lock before it waits for the others{location}: "
        f"{member.who.name} cannot come there without the lock"
    )


def _advise_own_lock(member: Member, path: str, user_frame: Frame | None) -> str:
    """Return advice for a process that waits for itself: flock(2) locks an open file, not a process."""
    location = f" before {user_frame.file}:{user_frame.line}" if user_frame is not None else ""
    name = path.rpartition("/")[2]
    return (
        f"look for the other open() of {name or 'this file'} in the code of {member.who.name}{location}: "
        "release that lock first (LOCK_UN, or close the file), or lock once and pass the same file object on"
    )


_LINE = Frame("/home/u/train.py", 20, "cached", "fcntl.flock(file, fcntl.LOCK_EX)")
_INSERT = Frame(
    "/home/u/train.py", 20, "record", "conn.execute('insert into losses values (?)', row)"
)
_ELSEWHERE = 1 << 32 | 101
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "a process outside the job holds the lock, as the kernel shows": (
            example_awaited(
                sample_member(1, stack=sample_stack(_LINE)),
                lock_waits=(LockWait(101, (77,), "/tmp/cache.lock"),),
            ),
            "worker 1 waits for the file lock /tmp/cache.lock at train.py:20 in cached; "
            "the others wait for it",
        ),
        "another worker holds the lock while it waits in a collective": (
            example_awaited(
                sample_member(1, stack=sample_stack(_LINE)),
                lock_waits=(LockWait(101, (100,), "/tmp/cache.lock"),),
            ),
            "worker 1 waits for the file lock /tmp/cache.lock, held by worker 0, at train.py:20 in "
            "cached; the holder and the others wait for it",
        ),
        "a worker waits for a lock that it holds itself through another descriptor": (
            example_awaited(
                sample_member(1, stack=sample_stack(_LINE)),
                lock_waits=(LockWait(101, (101,), "/tmp/cache.lock"),),
            ),
            "worker 1 waits for the file lock /tmp/cache.lock, which it holds itself through another "
            "descriptor at train.py:20 in cached; the others wait for it",
        ),
        "the worker that holds the lock is idle too": (
            stalled_job(
                waiting_member(0),
                sample_member(1, stack=sample_stack(_LINE)),
                sample_member(2, stack=sample_stack(USER)),
                lock_waits=(LockWait(101, (102,), "/tmp/cache.lock"),),
            ),
            "worker 1 waits for the file lock /tmp/cache.lock at train.py:20 in cached; "
            "the others wait for it",
        ),
        "the worker that waits for the lock runs on another host": (
            example_awaited(
                sample_member(1, stack=sample_stack(_LINE), key=_ELSEWHERE),
                lock_waits=(LockWait(_ELSEWHERE, (77,), "/tmp/cache.lock"),),
            ),
            "worker 1 waits for the file lock /tmp/cache.lock at train.py:20 in cached; "
            "the others wait for it",
        ),
        "a worker asks a database again and again that another one has locked": (
            example_awaited(
                sample_member(1, stack=sample_stack(_INSERT)),
                lock_waits=(LockWait(101, (100,), "/tmp/runs.db", polls=True, has_open=True),),
            ),
            "worker 1 waits for the file lock /tmp/runs.db, held by worker 0, at train.py:20 in record; the "
            "holder and the others wait for it",
        ),
    },
    silent_on={
        "a worker is stuck elsewhere, and another one has locked a file that it has open": example_awaited(
            sample_member(1, stack=sample_stack(USER)),
            lock_waits=(LockWait(101, (100,), "/tmp/runs.db", polls=True, has_open=True),),
        ),
        "a worker is stuck in a call of a database, and another one has locked another file": example_awaited(
            sample_member(1, stack=sample_stack(_INSERT)),
            lock_waits=(LockWait(101, (100,), "/tmp/cache.lock", polls=True),),
        ),
        "a process outside the job waits for a lock": example_awaited(
            waiting_member(1), lock_waits=(LockWait(999, (77,), "/tmp/x"),)
        ),
        (
            "a process on this host waits for a lock, and has the pid of a worker on another host"
        ): example_awaited(
            sample_member(1, stack=sample_stack(USER), key=_ELSEWHERE),
            lock_waits=(LockWait(101, (77,), "/tmp/x"),),
        ),
        "the worker that holds the lock is computing, and will release it": stalled_job(
            waiting_member(0),
            sample_member(1, stack=sample_stack(_LINE)),
            sample_member(2, stack=sample_stack(USER, moving=True), cpu=0.9),
            lock_waits=(LockWait(101, (102,), "/tmp/cache.lock"),),
        ),
        "a second thread of a worker waits for the lock while its main thread computes": example_awaited(
            sample_member(1, stack=sample_stack(USER, moving=True), cpu=1.0),
            lock_waits=(LockWait(101, (77,), "/tmp/cache.lock"),),
        ),
        "a second thread of a worker waits for the lock during an evaluation": example_awaited(
            sample_member(1, stack=sample_stack(USER), spent=Spent(now="evaluation")),
            lock_waits=(LockWait(101, (77,), "/tmp/cache.lock"),),
        ),
        "a worker has waited for the lock for one second": example_awaited(
            sample_member(1, stack=sample_stack(_LINE)), progress_at=99.0
        ),
    },
    passes=True,
    drill=("file-lock", "file-lock-elsewhere"),
)
