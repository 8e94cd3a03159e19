"""What a member waits for that stands in a wait for a child process of its own."""

from __future__ import annotations

from allaboard.analysis.member_names import on_host
from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.stopped_child import resume_command, stopped_children_evidence
from allaboard.facts import Evidence, JobView, Member

_MAX_COMMAND_CHARS = 40
"""Characters of a command that a sentence has room for."""


def awaits_child(member: Member) -> bool:
    """Whether its main thread waits for a child process, whatever that does."""
    return spot(member.stack) is Spot.CHILD


def describe_child(member: Member) -> str:
    """``its child process 4711 (unzip data.zip)``, ``a child process`` where none is known."""
    children = member.stack.children if member.stack is not None else ()
    if not children:
        return "a child process"
    pid, command = children[0]
    program, _, arguments = command.partition(" ")
    name = " ".join(f"{program.rpartition('/')[2]} {arguments}".split()) or "?"
    short = name if len(name) <= _MAX_COMMAND_CHARS else name[: _MAX_COMMAND_CHARS - 1] + "…"
    more = f" and {len(children) - 1} more" if len(children) > 1 else ""
    return f"its child process {pid} ({short}){more}"


def child_evidence(member: Member) -> tuple[Evidence, ...]:
    """Who of the children is stopped, and their commands."""
    children = member.stack.children if member.stack is not None else ()
    commands = tuple(Evidence(f"child {pid}: {command}", "/proc") for pid, command in children[:2])
    return (*stopped_children_evidence(member), *commands)


def child_command(view: JobView, member: Member) -> str:
    """What to type to see what the child does, or to let one go on that is stopped; "" where no child is
    known."""
    if resume := resume_command(view, member):
        return resume
    children = member.stack.children if member.stack is not None else ()
    if not children:
        return ""
    command = f"ps -o pid,stat,wchan:24,etime,args -p {children[0][0]}"
    return f"{on_host(view, member, command)}   # what the child waits for; a timeout= in the call bounds it"
