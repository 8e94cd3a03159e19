"""Parameter servers: who only serves, who trains, and when the work of such a job is done."""

from __future__ import annotations

from allaboard.facts import JobView, Member

SERVER_JOBS = ("ps",)
AROUND = ("evaluator",)


def has_servers(view: JobView) -> bool:
    """Whether the job has parameter servers."""
    return any(m.who.job in SERVER_JOBS for m in view.members)


def serves(member: Member) -> bool:
    """Whether it only serves: a ps, or a process inside `Server.join`, as TF2's workers are."""
    if member.launcher or member.candidate:
        return False
    inside = member.op is not None and member.op.name == "Server.join"
    return member.who.job in SERVER_JOBS or inside


def trainers(view: JobView) -> tuple[Member, ...]:
    """Those whose end is the end of the work: neither servers nor an evaluator."""
    return tuple(
        m for m in view.members if not serves(m) and m.who.job not in AROUND and not m.launcher
    )


def left_over(view: JobView) -> tuple[Member, ...]:
    """The servers (and an evaluator) that live on when all who train have ended well; else none."""
    if not has_servers(view):
        return ()
    work = trainers(view)
    if not work or any(m.exit is None or m.exit.code != 0 for m in work):
        return ()
    return view.alive
