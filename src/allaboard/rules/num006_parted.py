"""Parameters that were equal on all ranks no longer are.

Opt-in: `--check-values N` looks at some elements of one parameter every N steps, each parameter in turn,
right after the optimizer's step. Two looks in a row must differ. Only the parameters of models in
`DistributedDataParallel` over all ranks are looked at: those that FSDP, a sharded optimizer or a pipeline
gives to a rank differ by right, as those of two jobs side by side do, and of gradients that a script
averages by itself nothing is known.

## Why it matters
Data-parallel ranks must hold the same model. A rank that has diverged trains another model, and its share
of the average belongs to that one. The job ends with exit code 0, and with the checkpoint of whichever rank
saved it.

## What to do
Look for the usual reasons: a rank that loaded another checkpoint after DDP was built, `no_sync()` on one
rank, an optimizer state that was restored on one rank alone, a forward that
calls `model.module`. Ranks that average only now and then (local SGD) rightly differ in between: choose N
as a multiple of their interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from allaboard.analysis.member_names import names
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Check, Claim, Evidence, JobView, Member, Severity, Stage
from allaboard.facts.samples import declared, job, member

ROW = 2


def check(view: JobView) -> Iterator[Claim]:
    members = tuple(m for m in view.alive if not m.launcher and m.checks)
    if len(members) < 2 or len(members) != sum(1 for m in view.alive if not m.launcher):
        return
    if any(m.declared is not None and m.declared.world_size != len(members) for m in members):
        return  # not the whole job, or several that train a model each
    looks: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for one in members:
        for look in one.checks:
            looks[look.step, look.parameter][one.called] = look.digest
    whole = sorted(k for k, by in looks.items() if len(by) == len(members))
    apart = [len(set(looks[k].values())) > 1 for k in whole]
    if len(whole) >= ROW and all(apart[-ROW:]):
        first = next(i for i in range(len(apart)) if all(apart[i:]))
        yield _claim(members, whole, first, looks[whole[first]])


def _claim(
    members: tuple[Member, ...], whole: list[tuple[int, int]], first: int, digests: dict[int, int]
) -> Claim:
    usual, many = Counter(digests.values()).most_common(1)[0]
    half = many * 2 > len(members)
    odd = tuple(m for m in members if not half or digests[m.called] != usual)
    step, parameter = whole[first]
    before = f"the same on all at step {whole[first - 1][0]}" if first else "no earlier look"
    return Claim(
        summary=f"the parameters of {names(odd)} have diverged from the others' by step {step}"
        if half
        else f"the ranks' parameters have diverged by step {step}",
        who=tuple(m.who for m in odd),
        evidence=(
            Evidence(
                ", ".join(f"rank {m.who.rank} {digests[m.called]:08x}" for m in members[:8]),
                f"parameter {parameter} of those in DDP, after step {step}",
            ),
            Evidence(f"{before}; {len(whole) - first} looks differ since", "black box"),
        ),
        fix="look for what only some ranks do to the model after DDP was built: a checkpoint loaded, "
        "no_sync(), model.module",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _checked(rank: int, *digests: int, size: int = 3) -> Member:
    checks = tuple(Check(10 * n, n % 2, d) for n, d in enumerate(digests, 1))
    return member(rank, checks=checks, declared=declared(rank, size))


RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("checks",),
    fires_on={
        "one has parted": (
            job(_checked(0, 1, 2, 3), _checked(1, 1, 7, 8), _checked(2, 1, 2, 3)),
            "the parameters of worker 1 have diverged from the others' by step 20",
        ),
        "two ranks": (
            job(_checked(0, 1, 2, 3, size=2), _checked(1, 1, 7, 8, size=2)),
            "the ranks' parameters have diverged by step 20",
        ),
    },
    silent_on={
        "all equal": job(*(_checked(r, 1, 2, 3) for r in range(3))),
        "together again": job(_checked(0, 1, 2, 3), _checked(1, 1, 7, 3), _checked(2, 1, 2, 3)),
        "one is a step behind": job(_checked(0, 1, 2, 3), _checked(1, 1, 2), _checked(2, 1, 2, 3)),
        "two jobs side by side, each with a model of its own": job(
            *(_checked(r, 1, 2, 3, size=2) for r in (0, 1)),
            *(_checked(r, 4, 5, 6, size=2) for r in (2, 3)),
        ),
        "not looked at": job(member(0), member(1), member(2)),
    },
    since="0.1",
    drill=("parted",),
)
