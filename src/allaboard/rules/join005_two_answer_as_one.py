"""Two members say that they are the same rank.

## Why it matters
PyTorch's error then names the rank that is absent, not the one that is there twice, and TensorFlow's
second task cannot bind its port while the first hangs. Nothing else that is said about a job can be
trusted before its members are who they say.

## What to do
Look where the rank is computed: a copied environment, two launchers started with the same
`--node-rank`, a `rank=` in code that ignores the process's own number. With `--coordinator`: two jobs that
were given one address, and that nothing tells apart (a launcher's job id, ALLABOARD_JOB_ID).
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Member, Stage
from allaboard.facts.samples import declared, ended, gathering, held
from allaboard.rollcall.roll import Roll, roll_calls


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        for twins in roll.twice:
            alive = tuple(m for m in twins if m.alive)
            if len(alive) > 1:
                yield _claim(roll, alive, view.joined, view.place)


def _claim(roll: Roll, twins: tuple[Member, ...], joined: bool, place: str) -> Claim:
    rank = twins[0].who.rank
    # Who else is missing may yet come.
    settled = 0 < len(roll.missing) <= sum(len(t) - 1 for t in roll.twice)
    absent = f"; nobody is rank {', '.join(map(str, roll.missing))}" if settled else ""
    hosts = list(dict.fromkeys(m.who.host for m in twins))
    on = f", on {' and '.join(hosts)}" if joined else ""
    each = [f"pid {m.who.pid}" + (f" on {m.who.host}" if joined else "") for m in twins]
    spare = f"the rank {roll.missing[0] if settled else 'it should have'}"
    twice = f"if the job was started twice on {hosts[0]}, end one; else " if len(hosts) == 1 else ""
    if place and _apart(twins):
        twice = "if these are two jobs, give each an ALLABOARD_JOB_ID or a --coordinator of its own; else "
    return Claim(
        summary=f"{len(twins)} processes say that they are rank {rank}{on}{absent}",
        who=tuple(m.who for m in twins),
        evidence=(
            *(
                Evidence(f"{name}: rank {rank} of {m.declared.world_size}", m.declared.origin)
                for name, m in zip(each, twins, strict=True)
                if m.declared is not None
            ),
            *((Evidence(f"all meet at {place}", "--coordinator"),) if place else ()),
        ),
        fix=(twice if joined else "") + f"give {' or '.join(each)} {spare}",
        since=max(m.phase_since for m in twins),
    )


def _apart(twins: tuple[Member, ...]) -> bool:
    """Whether their frameworks are to meet at different places, as those of different jobs do."""
    told = [m.declared for m in twins if m.declared is not None]
    return any((t.place, t.cluster) != (told[0].place, told[0].cluster) for t in told)


_OTHERS = held(1, declared=declared(1, place="tcp://c:29500"))
RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "rank 1 twice": (
            gathering(held(0), held(1), held(2, declared=declared(1), who=held(1).who)),
            "2 processes say that they are rank 1; nobody is rank 2",
        ),
        "rank 1 twice, and others have yet to come": (
            gathering(held(0, 4), held(1, 4), held(2, 4, declared=declared(1, 4), who=held(1).who)),
            "2 processes say that they are rank 1",
        ),
        "started twice on one host": (
            gathering(held(0), held(1), held(1), held(2), joined=True, leads=True, launched=1),
            "2 processes say that they are rank 1, on a",
        ),
        "two jobs at one prefix": (
            gathering(
                held(0), held(1), _OTHERS, joined=True, leads=True, place="etcd://node9:2379/a"
            ),
            "2 processes say that they are rank 1, on a; nobody is rank 2",
        ),
    },
    silent_on={
        "each is one": gathering(held(0), held(1), held(2)),
        "the first has ended": gathering(held(0), ended(1, code=1), held(1)),
    },
    since="0.1",
    drill=("wrong-rank", "tf-two-tasks", "same-rank", "same-task"),
)
