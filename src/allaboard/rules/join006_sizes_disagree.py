"""The workers expect different world sizes.

## Why it matters
In PyTorch, the init of the rank with the smaller world size succeeds, and its first collective hangs. A
worker with a world size of 1 silently trains alone and exits with code 0.

## What to do
Give every worker the same world size. Look at the worker that differs: an old environment variable, a
TF_CONFIG without `cluster`, or a launcher that was started with a different number of hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import conjugate_verb, name_members
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Phase, Who
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import arrived_member, gathering_job, sample_declaration


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        present = {s: ms for s, ms in roll.members_by_size.items() if any(_counts(m) for m in ms)}
        if len(present) > 1 and roll.is_settled(view.now):
            yield _claim_tie(roll) if roll.is_tied else _claim(roll)


def _counts(member: Member) -> bool:
    """Return True if the member is at its start. Parameter servers are never held at the gate; they count
    while they live."""
    declaration = member.declared
    return member.alive and (
        member.phase <= Phase.JOINING or (declaration is not None and not declaration.hold)
    )


def _claim(roll: RollCall) -> Claim:
    minority = tuple(
        m for size, ms in roll.members_by_size.items() if size != roll.size for m in ms
    )
    minority_sizes = {m.declared.world_size for m in minority if m.declared is not None}
    sizes = ", ".join(str(s) for s in sorted(minority_sizes))
    lists = _task_difference(roll, minority)
    return Claim(
        summary=f"{name_members(minority)} {conjugate_verb('expect', minority)} world size {sizes}, the "
        f"others {roll.size}" + lists,
        who=tuple(m.who for m in minority),
        evidence=tuple(
            Evidence(f"{m.who.name}: world size {m.declared.world_size}", m.declared.origin)
            for m in (*minority[:2], roll.members_by_size[roll.size][0])
            if m.declared is not None
        ),
        fix=f"give {name_members(minority)} the same cluster as the others in TF_CONFIG"
        if lists
        else f"set the world size of {name_members(minority)} to {roll.size} "
        f"({_world_size_source(minority[0])}){_other_way_round(roll, minority_sizes)}",
        since=max(m.phase_since for m in minority),
    )


def _other_way_round(roll: RollCall, minority_sizes: set[int]) -> str:
    """Return what speaks for the minority: just as many ranks as it expects are there."""
    count = sum(len(members) for members in roll.members_by_size.values())
    if minority_sizes != {count} or roll.size <= count:
        return ""
    return f"; or that of the others to {count}, which is how many are there"


WORLD_SIZE_SOURCE = {
    "torch": "WORLD_SIZE, or world_size=",
    "jax": "num_processes=, or JAX_NUM_PROCESSES",
    "tensorflow": "the cluster in TF_CONFIG",
}
"""Where the world size is set, by framework."""


def _world_size_source(member: Member) -> str:
    framework = member.declared.framework if member.declared is not None else ""
    return WORLD_SIZE_SOURCE.get(framework, "WORLD_SIZE")


def _task_difference(roll: RollCall, minority: tuple[Member, ...]) -> str:
    """Return which tasks its cluster lacks or has in addition, or ""."""
    declaration, majority = minority[0].declared, roll.members_by_size[roll.size][0].declared
    if declaration is None or majority is None or not (declaration.cluster and majority.cluster):
        return ""
    lacks = [t.replace(":", " ") for t in majority.cluster if t not in declaration.cluster]
    alone = [t.replace(":", " ") for t in declaration.cluster if t not in majority.cluster]
    differences = [
        f"{preposition} {', '.join(ts[:4])}"
        for preposition, ts in (("without", lacks), ("with", alone))
        if ts
    ]
    return f" ({' and '.join(differences)})" if differences else ""


def _claim_tie(roll: RollCall) -> Claim:
    """Report a tie: as many members declared one world size as another, so nothing shows which is right."""
    by_size = {
        s: ms
        for s, ms in sorted(roll.members_by_size.items())
        if len(ms) == len(roll.members_by_size[roll.size])
    }
    members = tuple(m for ms in by_size.values() for m in ms)
    sizes = " or ".join(str(s) for s in by_size)
    return Claim(
        summary=", ".join(
            f"{name_members(ms)} {conjugate_verb('expect', ms)} world size {s}"
            for s, ms in by_size.items()
        ),
        who=tuple(m.who for m in members),
        evidence=tuple(
            Evidence(f"{m.who.name}: world size {s}", m.declared.origin)
            for s, ms in by_size.items()
            for m in ms[:2]
            if m.declared is not None
        ),
        fix=f"give all of them the same world size ({sizes}, the number that you start) in WORLD_SIZE, "
        "world_size=, or the cluster in TF_CONFIG",
        since=max(m.phase_since for m in members),
    )


_CHIEF = Who(job="chief", index=0, rank=0, host="a", pid=100)
_FEWER = {"chief:0": "a:1", "worker:0": "b:1"}
_ALL = _FEWER | {"ps:0": "c:1"}
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one of three ranks expects world size 2": (
            gathering_job(
                arrived_member(0),
                arrived_member(1),
                arrived_member(2, declared=sample_declaration(2, 2)),
            ),
            "worker 2 expects world size 2, the others 3",
        ),
        "one of three ranks expects world size 1": (
            gathering_job(
                arrived_member(0),
                arrived_member(1, declared=sample_declaration(1, 1)),
                arrived_member(2),
            ),
            "worker 1 expects world size 1, the others 3",
        ),
        "two ranks were started, and one of them expects three": (
            gathering_job(
                arrived_member(0, declared=sample_declaration(0, 2)), arrived_member(1), launched=2
            ),
            "worker 1 expects world size 3, the others 2",
        ),
        "the chief's cluster lacks a parameter server that the others have": (
            gathering_job(
                arrived_member(
                    0, who=_CHIEF, declared=sample_declaration(0, 2, job="chief", cluster=_FEWER)
                ),
                *(
                    arrived_member(
                        r,
                        declared=sample_declaration(r, cluster=_ALL, hold=False),
                        phase=Phase.JOINED,
                    )
                    for r in (1, 2)
                ),
            ),
            "chief 0 expects world size 2, the others 3 (without ps 0)",
        ),
        "one worker on each of two hosts: one expects two ranks, the other three": (
            gathering_job(
                arrived_member(0, declared=sample_declaration(0, 2)),
                arrived_member(1),
                launched=1,
                joined=True,
            ),
            "worker 0 expects world size 2, worker 1 expects world size 3",
        ),
    },
    silent_on={
        "all ranks expect world size 3": gathering_job(
            arrived_member(0), arrived_member(1), arrived_member(2)
        )
    },
    retry=Retry.NEVER,
    drill=("sizes-disagree", "tf-no-cluster", "world-sizes-differ"),
)
