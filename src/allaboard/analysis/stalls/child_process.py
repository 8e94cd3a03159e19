"""Members that wait for a child process of their own: which child, its command, and how to look at it; and
children that are stopped (SIGSTOP, Ctrl-Z), for which a member may wait."""

from __future__ import annotations

from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Evidence, JobView, Member, Stack

_READERS = ("communicate", "_communicate")
"""Functions of subprocess that read what the child writes while they wait for its end."""
MAX_SHOWN_PIDS = 4
"""Processes that a sentence names before it counts the rest."""
_MAX_COMMAND_CHARS = 40
"""Characters shown of a child's command line."""


def awaits_child(member: Member) -> bool:
    """Return True if the member's main thread waits for a child process, whatever the child does."""
    return classify_stack(member.stack) is Spot.CHILD


def describe_child(member: Member) -> str:
    """Return "its child process 4711 (unzip data.zip)", or "a child process" if none is known."""
    children = member.stack.children if member.stack is not None else ()
    if not children:
        return "a child process"
    pid, command = children[0]
    program, _, arguments = command.partition(" ")
    name = " ".join(f"{program.rpartition('/')[2]} {arguments}".split()) or "?"
    shortened = name if len(name) <= _MAX_COMMAND_CHARS else name[: _MAX_COMMAND_CHARS - 1] + "…"
    more = f" and {len(children) - 1} more" if len(children) > 1 else ""
    loaders = dict(member.stack.loaders) if member.stack is not None else {}
    place = f", at {loaders[pid]}" if pid in loaders else ""
    return f"its child process {pid} ({shortened}{place}){more}"


def unread_child(member: Member) -> int:
    """Return the pid of a child that can write no more, since the member waits for its end and does not read
    its output; 0 if there is none."""
    if member.stack is None or any(f.function in _READERS for f in member.stack.frames):
        return 0
    return member.stack.unread_child


def advise_reader(member: Member) -> str:
    """Return how to read what the child writes; "" unless it waits for that."""
    if not unread_child(member) or member.stack is None:
        return ""
    frame = member.stack.main_frame
    code_line = f"{frame.file}:{frame.line}"
    if any("/multiprocessing/" in f.file for f in member.stack.frames):
        return f"read the queue or pipe before the join() at {code_line}: the process ends once all is read"
    return f"call communicate() at {code_line} instead of wait(), or send the output to a file or to DEVNULL"


def advise_forked(member: Member) -> str:
    """Return how to start a process so that it inherits no lock and needs no thread that it lacks; "" unless
    one of the member's stands at a lock, or waits alone."""
    for pid, frame in member.stack.loaders if member.stack is not None else ():
        if member.stack is not None and pid in member.stack.lone_waiters:
            return (
                f'start process {pid} by spawn instead of fork (mp.get_context("spawn"), '
                'DataLoader(multiprocessing_context="spawn")), or before the first use of what '
                f"{frame.file}:{frame.line} calls: native code with threads of its own (OpenMP below PyTorch "
                "and NumPy) was used before the fork, and the new process has none of these threads"
            )
        if classify_stack(Stack(frames=(frame,), taken_at=0.0)) is Spot.LOCK:
            return (
                f"if a thread may hold the lock of {frame.file}:{frame.line} at the fork, nobody releases "
                'it in the new process: start that by spawn (mp.get_context("spawn"), '
                'DataLoader(multiprocessing_context="spawn")), or before the threads'
            )
    return ""


def child_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return which children of the member are stopped, and the command lines of the first two."""
    children = member.stack.children if member.stack is not None else ()
    commands = tuple(Evidence(f"child {pid}: {command}", "/proc") for pid, command in children[:2])
    loaders = member.stack.loaders if member.stack is not None and commands else ()
    lines = (Evidence(f.text or str(f), f"{f.file}:{f.line}") for _, f in loaders[:2])
    return (
        *stopped_children_evidence(member),
        *lone_waiter_evidence(member),
        *commands,
        *lines,
    )


def lone_waiter_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return that a process has one thread, which waits for another one; () if none has."""
    pids = member.stack.lone_waiters if member.stack is not None else ()
    return tuple(
        Evidence(
            f"process {pid} has one thread, which waits for another one", f"/proc/{pid}/syscall"
        )
        for pid in pids[:1]
    )


def child_command(view: JobView, member: Member) -> str:
    """Return the command that shows what the child does, or resumes it if stopped, or how to read what it
    writes; "" without a child."""
    if advice := resume_command(view, member) or advise_reader(member) or advise_forked(member):
        return advice
    children = member.stack.children if member.stack is not None else ()
    if not children:
        return ""
    command = f"ps -o pid,stat,wchan:24,etime,args -p {children[0][0]}"
    return (
        f"{command_on_host(view, member, command)}   # what the child waits for; a timeout= in the call "
        "bounds it"
    )


def describe_stopped_children(member: Member) -> str:
    """Return "its process 4711 is stopped (SIGSTOP or Ctrl-Z)"; "" if none is stopped."""
    pids = _stopped_pids(member)
    if not pids:
        return ""
    more = f" and {len(pids) - MAX_SHOWN_PIDS} more" if len(pids) > MAX_SHOWN_PIDS else ""
    named = f"process{'es' if pids[1:] else ''} {', '.join(pids[:MAX_SHOWN_PIDS])}{more}"
    return f"its {named} {'are' if pids[1:] else 'is'} stopped (SIGSTOP or Ctrl-Z)"


def stopped_children_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return for how long each stopped process has been seen in state T."""
    stopped = member.stack.stopped if member.stack is not None else ()
    return tuple(
        Evidence(f"process {pid} in state T for at least {span:.0f} s", f"/proc/{pid}/stat")
        for pid, span in stopped[:MAX_SHOWN_PIDS]
    )


def resume_command(view: JobView, member: Member) -> str:
    """Return the command that resumes the stopped processes; "" if none is stopped."""
    pids = _stopped_pids(member)
    return command_on_host(view, member, f"kill -CONT {' '.join(pids)}") if pids else ""


def _stopped_pids(member: Member) -> list[str]:
    return [str(pid) for pid, _ in member.stack.stopped] if member.stack is not None else []
