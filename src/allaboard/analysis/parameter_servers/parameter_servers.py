"""Parameter servers: who only serves, who trains, and when the work of such a job is done."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.facts import Exit, JobView, Member, Phase
from allaboard.facts.memo import cached_per_view
from allaboard.facts.signal_name import signal_name

SERVER_JOBS = ("ps",)
COLLECTIVE = "MultiWorkerMirroredStrategy"
TF2_CHIEF = "ParameterServerStrategy"
"""What the chief of TensorFlow 2's parameter servers declares: there everything hangs on it."""
CREATES = ("SessionManager.prepare_session", "SessionManager.recover_session")
"""Operations in which TF1's chief makes its session, and waits for every server."""
AWAITS_CHIEF = "SessionManager.wait_for_session"
"""The operation in which any other worker of TF1 waits until the chief has initialised."""
CLOSES = "Coordinator.join"
"""The operation in which a worker of TF1 that has left its loop waits for threads of its own."""
JOINS = "Server.join"
"""The operation in which a server, and a worker of TF2, stays."""
SERVER = "tf.distribute.Server"
"""What a task declares that has made a server."""
AROUND = ("evaluator",)
"""Tasks that take no part in the cluster, and tell their framework of none."""


@cached_per_view
def has_servers(view: JobView) -> bool:
    """Whether the job has parameter servers."""
    return any(m.who.job in SERVER_JOBS for m in view.members)


def serves(member: Member) -> bool:
    """Whether it only serves: a ps, or a process inside `Server.join`, as TF2's workers are."""
    if member.launcher or member.candidate:
        return False
    inside = member.op is not None and member.op.name == JOINS
    return member.who.job in SERVER_JOBS or inside or member.serving


def of_chief(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members of a job, where TensorFlow 2's workers count as serving once its chief is here: some wait
    in a loop or for an event of their own instead of `Server.join`."""
    if not any(m.declared is not None and m.declared.call == TF2_CHIEF for m in members):
        return members
    return tuple([msgspec.structs.replace(m, serving=True) if _handed(m) else m for m in members])


def _handed(member: Member) -> bool:
    """Whether it is a worker that has a server and has made no step itself."""
    told = member.declared
    return told is not None and told.call == SERVER and told.job == "worker" and member.step == 0


@cached_per_view
def trainers(view: JobView) -> tuple[Member, ...]:
    """Those whose end is the end of the work: neither servers nor an evaluator."""
    return tuple(
        m for m in view.members if not serves(m) and m.who.job not in AROUND and not m.launcher
    )


def beside(member: Member) -> bool:
    """Whether the training goes on without it while it is only stopped: an evaluator, a launcher, a child
    that has told its framework of no part in the job."""
    return member.who.job in AROUND or member.launcher or member.candidate


def only_serve(view: JobView) -> bool:
    """Whether nobody who is alive here trains."""
    return not any(m.alive for m in trainers(view))


def in_use(view: JobView) -> bool:
    """Whether a server that lives here exchanged anything with anybody in the last seconds."""
    pairs = (p for m in view.alive if serves(m) and not m.elsewhere for p in m.pairs)
    return any(p.received > 0 or p.sent > 0 for p in pairs)


def left_over(view: JobView) -> tuple[Member, ...]:
    """The servers (and an evaluator) that live on when all who train have ended well, but those whose host
    was interrupted; else none."""
    if not has_servers(view):
        return ()
    work = trained(view)
    if not work or any(m.exit is None or m.exit.code != 0 for m in work):
        return ()
    return view.alive


def trained(view: JobView) -> tuple[Member, ...]:
    """Those who train, without whom their host's user has ended: the others went on."""
    return tuple(m for m in trainers(view) if m.interrupted is None)


def collective_with_servers(member: Member) -> bool:
    """Whether it makes a collective strategy in a cluster that lists servers, which take no part."""
    told = member.declared
    return (
        told is not None
        and told.call == COLLECTIVE
        and any(t.startswith("ps:") for t in told.cluster)
    )


def goes_on_without(view: JobView, member: Member) -> bool:
    """Whether the job can do without it: TensorFlow 2's chief hands what a lost worker had to another, and
    goes on while there is one, to its end."""
    if (
        member.who.job != "worker"
        or not serves(member)
        or (member.exit is not None and member.exit.lost)
    ):
        return False
    chiefs = [m for m in view.members if m.declared is not None and m.declared.call == TF2_CHIEF]
    well = any(m.exit is None or m.exit.code == 0 for m in chiefs)
    return well and any(m.who.job == "worker" and serves(m) for m in view.alive)


def lost(view: JobView) -> bool:
    """Whether a server that those who train need is dead or stopped: they wait for that one, whatever
    else they do."""
    return any(one is not None and (not one.alive or one.stopped) for one in _servers(view))


def wait_for_peers(view: JobView) -> bool:
    """Whether those who train wait for each other: with parameter servers, only in a synchronous
    optimizer."""
    return not has_servers(view) or any("synchronous" in m.notes for m in trainers(view))


def _servers(view: JobView) -> list[Member | None]:
    """The newest process of each server."""
    indices = {m.who.index for m in view.members if m.who.job in SERVER_JOBS}
    return [find(view, job, index) for job in SERVER_JOBS for index in sorted(indices)]


def awaited_by_servers(view: JobView) -> tuple[Member, ...]:
    """Whose end servers live for, where nobody who trained has failed: of those who train yet; then of an
    evaluator."""
    work = trainers(view)
    fine = all(m.exit is None or m.exit.code == 0 for m in work)
    if not (work and fine and any(serves(m) for m in view.alive)):
        return ()
    return tuple(m for m in work if m.alive) or tuple(m for m in view.alive if m.who.job in AROUND)


@cached_per_view
def not_begun(view: JobView) -> tuple[Member, ...]:
    """Those who live and have not begun, while somebody waits for them in the start of a session or in a
    synchronous optimizer."""
    inside = {m.op.name for m in view.alive if m.op is not None}
    together = any("synchronous" in m.notes and m.phase is Phase.TRAINING for m in view.alive)
    if not has_servers(view) or not (together or inside & {AWAITS_CHIEF, *CREATES}):
        return ()
    return tuple(m for m in view.alive if not m.launcher and not _begun(m))


def _begun(member: Member) -> bool:
    """Whether it serves, trains, or does its part of the start."""
    if member.who.job in SERVER_JOBS:
        return member.phase >= Phase.JOINED
    known = (AWAITS_CHIEF, JOINS, *CREATES)
    return (
        member.step > 0
        or member.who.job in AROUND
        or (member.op is not None and member.op.name in known)
    )


def name(member: Member) -> str:
    """As a person started it: ``ps 0``."""
    return member.who.name


def wait(members: tuple[Member, ...] | list[Member]) -> str:
    return "wait" if len(members) > 1 else "waits"


def how_ended(end: Exit) -> str:
    """``was killed by SIGKILL``, ``ended with exit code 1``."""
    if end.lost:
        return "has gone with its host"
    if end.signal is not None:
        return f"was killed by {signal_name(end.signal)}"
    return (
        f"ended with exit code {end.code}"
        if end.code is not None
        else "ended, and how was not seen"
    )


def chief(view: JobView) -> tuple[str, int]:
    """The task that initialises the variables: the chief where the cluster has one, else worker 0."""
    return chief_of(view.members)


def chief_of(members: Iterable[Member]) -> tuple[str, int]:
    """As `chief`, among these."""
    jobs: set[str] = set()
    for one in members:
        jobs.add(one.who.job)
        if one.declared is not None:
            jobs |= {t.partition(":")[0] for t in one.declared.cluster}
    return next(((j, 0) for j in ("chief", "master") if j in jobs), ("worker", 0))


def find(view: JobView, job: str, index: int) -> Member | None:
    """The newest process of a task; None where none was ever seen."""
    found = [m for m in view.members if (m.who.job, m.who.index) == (job, index)]
    return max(found, key=lambda m: (m.alive, m.phase_since), default=None)


def doing(member: Member | None) -> str:
    """What somebody who is awaited does instead, in a few words."""
    if member is None:
        return "no process of it was ever seen"
    if member.exit is not None:
        return f"it {how_ended(member.exit)}"
    if member.stopped:
        return "it is stopped (SIGSTOP or Ctrl-Z)"
    place = member.stack.user if member.stack is not None else None
    if place is not None:
        return f"it is at {place}"
    if member.phase is Phase.IMPORTING:
        return f"it is importing {member.detail}"
    return "it is alive, in its own code"
