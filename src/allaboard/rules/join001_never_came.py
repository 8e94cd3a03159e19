"""A worker that the others wait for was never heard of.

## Why it matters
Every framework's init waits until the last worker is there: PyTorch for 30 minutes, TensorFlow forever, JAX
for five minutes, and then it aborts. None of them says which one is missing.

## What to do
Find out whether anything starts it. The world size that the workers were given may be larger than the
number of processes that are started, a rank may be computed wrongly, or the launcher may have been given
fewer hosts. `--timeout` sets how long to wait for a worker that nobody has heard of.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis import member_names
from allaboard.analysis.roll_call.ended_by_launcher import sent_away, unaccounted
from allaboard.analysis.roll_call.roll_call import Roll, roll_calls
from allaboard.analysis.roll_call.task_names import called, who
from allaboard.analysis.roll_call.waiting_message import away, turned_away
from allaboard.contracts import Rule
from allaboard.facts import (
    Certainty,
    Claim,
    Declared,
    Evidence,
    Exit,
    JobView,
    Knock,
    Member,
    Phase,
    Stage,
)
from allaboard.facts.samples import coming, declared, gathering, held, member

ALIKE = {
    "no-secret": "give all hosts of the job the same secret: --secret-file FILE, or ALLABOARD_SECRET",
    "no-tls": "give all hosts certificates of the same authority (--tls-cert, --tls-key, --tls-ca), or "
    "none",
    "version": "install the same version of allaboard on all hosts: pip install -U allaboard",
    "other-job": "if it belongs to this job, start all of its tasks in one launch, or give all of them the "
    "same ALLABOARD_JOB_ID; otherwise give each job a port of its own",
}
"""What all hosts of a job must have alike, by what some that came lack."""


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        gone = sent_away(roll)
        if gone and unaccounted(roll) and _visible(view, roll) and not roll.late:
            yield _ended(roll, gone)
            continue
        absent, waiting = roll.never_heard_of, _waiting(view, roll)
        if not absent or not waiting or not _visible(view, roll):
            continue
        since = [m.phase_since for m in waiting]
        waited = view.now - max(view.launched_at, *since)
        if waited >= view.timeout:
            yield _claim(view, roll, waited, min(since))


def _waiting(view: JobView, roll: Roll) -> tuple[Member, ...]:
    """Those who stand at the door. Where nobody was held (`--observe`), those who are in init by themselves,
    unless others may be there of whom nobody here sees anything."""
    return roll.held or (() if view.joined else roll.inside)


def _visible(view: JobView, roll: Roll) -> bool:
    """Where members may run on hosts that nobody here sees, absence proves nothing."""
    if view.joined:
        return view.leads
    return all(m.declared is not None and m.declared.local for m in roll.here)


def _claim(view: JobView, roll: Roll, waited: float, since: float) -> Claim:
    told, absent = roll.here[0].declared, roll.never_heard_of
    assert told is not None
    names = called(told, absent, 16)
    few = f"{len(roll.here)} of {roll.size} came; nobody has heard of {names}"
    refused = turned_away(view, roll)
    if refused:
        few = f"{len(roll.here)} of {roll.size} came, without {names}; {away(refused[0])}"
    return Claim(
        summary=few,
        who=tuple(who(told, r) for r in absent),
        evidence=(
            Evidence(f"world size {roll.size}", told.origin or told.call),
            Evidence(f"waited {waited:.0f} s", "timeout"),
            *((Evidence(f"all meet at {view.place}", "--coordinator"),) if view.place else ()),
            *(Evidence(one, "roll call") for one in map(away, refused[1:])),
        ),
        fix=_over_ssh(told.origin, absent)
        or (ALIKE[refused[0].kind] if refused else "")
        or f"start {names}, or {_fewer(told, len(roll.here))}{_one_place(view.place)}",
        # Whoever is in init already may meet somebody there of whom nothing is seen.
        certainty=Certainty.CERTAIN if roll.held else Certainty.LIKELY,
        since=since,
        awaits=bool(roll.held),
    )


def _ended(roll: Roll, gone: tuple[Member, ...]) -> Claim:
    """What started them did not wait, as launchers do when one of those that they started has failed."""
    told = gone[0].declared
    assert told is not None
    absent = unaccounted(roll)
    whom = called(told, absent, 16)
    return Claim(
        summary=f"nobody has heard of {whom}; {member_names.names(gone)} waited for it, and what started "
        f"{'it' if len(gone) == 1 else 'them'} has ended {'it' if len(gone) == 1 else 'them'}",
        who=tuple(who(told, r) for r in absent),
        evidence=(Evidence(f"world size {roll.size}", told.origin or told.call),),
        fix=f"read what {whom} wrote: most likely it failed before init, and its launcher ended the others",
        certainty=Certainty.LIKELY,
        since=min(m.phase_since for m in gone),
    )


def _fewer(told: Declared, here: int) -> str:
    """What else may be meant."""
    if told.cluster:
        return "take it out of the cluster that all the others are given (TF_CONFIG)"
    return f"give the world size that you mean ({here}?) where it is set"


def _one_place(place: str) -> str:
    """What else to look at where the user said where all meet."""
    if not place:
        return ""
    return f"; if it was started: is it given {place} there too, as --coordinator or ALLABOARD_COORDINATOR?"


def _over_ssh(origin: str, absent: tuple[int, ...]) -> str:
    """What to type where `preflight --hosts` starts every rank; "" where it does not."""
    if not origin.startswith("--hosts"):
        return ""
    hosts = origin.removeprefix("--hosts").strip().split(",")
    rank = absent[0]
    host = hosts[rank] if rank < len(hosts) and all(hosts) else "HOST"
    where = f"rank {rank} is started on {host if host != 'HOST' else 'its host'} by --hosts"
    return f"ssh -o BatchMode=yes {host} true   # {where}; see what is said of it"


_AWAY = Knock(
    peer="10.0.0.2",
    kind="no-secret",
    said="knows a secret of the job, and the host where all meet was given none",
    host="h1",
    rank=1,
)
_BARE = Knock(
    peer="10.0.0.2",
    kind="no-tls",
    said="has no certificate, and here one is wanted",
    host="h1",
    rank=1,
)
_OTHER = Knock(
    peer="10.0.0.2", kind="other-job", said="belongs to job 41, this is 42", host="h1", rank=1
)
_TASKS = {"worker:0": "a:1", "ps:0": "b:1", "chief:0": "c:1"}
_INSIDE = tuple(member(r, phase=Phase.JOINING, phase_since=60.0) for r in (0, 1))
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "world size too large": (
            gathering(held(0, 4), held(1, 4), held(2, 4), now=121.0),
            "3 of 4 came; nobody has heard of rank 3",
        ),
        "nobody was held": (
            gathering(*_INSIDE, now=121.0),
            "2 of 3 came; nobody has heard of rank 2",
        ),
        "a task of a cluster": (
            gathering(*(held(r, declared=declared(r, cluster=_TASKS)) for r in (0, 1)), now=121.0),
            "2 of 3 came; nobody has heard of ps 0 (b:1)",
        ),
        "it was turned away": (
            gathering(held(0, 2), joined=True, leads=True, launched=1, knocks=(_AWAY,), now=121.0),
            "1 of 2 came, without rank 1; h1 (rank 1) came and was turned away, since it knows a secret of "
            "the job, and the host where all meet was given none",
        ),
        "it has no certificate": (
            gathering(held(0, 2), joined=True, leads=True, launched=1, knocks=(_BARE,), now=121.0),
            "1 of 2 came, without rank 1; h1 (rank 1) came and was turned away, since it has no certificate, "
            "and here one is wanted",
        ),
        "its launcher says that it is of another job": (
            gathering(held(0, 2), joined=True, leads=True, launched=1, knocks=(_OTHER,), now=121.0),
            "1 of 2 came, without rank 1; h1 (rank 1) came and was turned away, since it belongs to job 41, "
            "this is 42",
        ),
        "an earlier job's rank, which is here": (
            gathering(
                *(held(r, 3) for r in (0, 1)),
                joined=True,
                leads=True,
                launched=1,
                knocks=(_OTHER,),
                now=121.0,
            ),
            "2 of 3 came; nobody has heard of rank 2",
        ),
        "they meet where the user said": (
            gathering(
                *(held(r, 3) for r in (0, 1)),
                joined=True,
                leads=True,
                launched=1,
                place="etcd://node9:2379/a",
                now=121.0,
            ),
            "2 of 3 came; nobody has heard of rank 2",
        ),
        "their launcher did not wait": (
            gathering(held(0, exit=Exit(at=69.0)), held(2), now=70.0),
            "nobody has heard of rank 1; worker 0 waited for it, and what started it has ended it",
        ),
        "started over ssh": (
            gathering(
                *(held(r, declared=declared(r, 3, origin="--hosts a,root@b,c")) for r in (0, 2)),
                now=121.0,
            ),
            "2 of 3 came; nobody has heard of rank 1",
        ),
    },
    silent_on={
        "in init by themselves, on a host of several": gathering(
            *_INSIDE, joined=True, leads=True, launched=1, now=121.0
        ),
        "in init by themselves, one late": gathering(*_INSIDE, coming(2), now=121.0),
        "there is time left": gathering(held(0, 4), held(1, 4), held(2, 4), now=119.0),
        "alive in its own code": gathering(held(0), held(1), coming(2), now=500.0),
    },
    since="0.1",
    drill=("never-comes", "host-never-starts", "etcd-other-prefix"),
)
