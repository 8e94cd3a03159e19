"""Which program each member runs, by the outermost frame of its own code. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.member_names import name_by_rank
from allaboard.facts import Evidence, Member

_MODULE = "<module>"
MAX_SHOWN_PROGRAMS = 3
"""Programs that a sentence names."""


def program_file(member: Member) -> str:
    """Return the path of the script that the member was started with; "" if its frames do not show that."""
    frames = member.stack.frames if member.stack is not None else ()
    own = [f for f in frames if f.is_user]
    # A frame that runs a module for another one (runpy, a launcher) is none of the user's own.
    return own[-1].file if own and own[-1].function == _MODULE else ""


def members_by_program(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Return the members by the name of their script, the rarest first; {} if all run one, or that is not
    known of each."""
    grouped: dict[str, list[Member]] = {}
    for member in members:
        grouped.setdefault(program_file(member).rpartition("/")[2], []).append(member)
    if "" in grouped or len(grouped) < 2:
        return {}
    return dict(sorted(grouped.items(), key=lambda entry: len(entry[1])))


def program_evidence(members: Sequence[Member]) -> tuple[Evidence, ...]:
    """Return which members run which script, if they run different ones; () if they do not."""
    parts = [
        f"{name_by_rank(alike)} {'run' if alike[1:] else 'runs'} {name}"
        for name, alike in list(members_by_program(members).items())[:MAX_SHOWN_PROGRAMS]
    ]
    return (Evidence(", ".join(parts), "stacks"),) if parts else ()


def program_advice(members: Sequence[Member]) -> str:
    """Return what to do about members of one job that run different scripts; "" if they do not."""
    names = list(members_by_program(members))
    if not names:
        return ""
    return (
        f"start the same script on all of them, or compare the calls of {' and '.join(names[:2])}: all "
        "processes of a job must make the same collective calls in the same order"
    )
