"""Parameters that were equal on all ranks have diverged.

Opt-in: `--check-values N` compares some elements of one parameter every N steps, each parameter in turn,
right after the optimizer's step. Two consecutive comparisons must differ. Only the parameters of models in
`DistributedDataParallel` over all ranks are compared: with FSDP, a sharded optimizer or a pipeline they
differ legitimately, as do those of two jobs side by side, and nothing is known of gradients that a script
averages by itself.

## Why it matters
Data-parallel ranks must hold the same model. A rank that has diverged trains another model, and its gradients
belong to that one. The job exits with code 0, and with the checkpoint of whichever rank saved it.

## What to do
Common causes: a rank that loaded another checkpoint after DDP was built, `no_sync()` on one rank, an
optimizer state that was restored on one rank only, a forward pass that calls `model.module`. Ranks that
average only from time to time (local SGD) differ legitimately in between: choose N as a multiple of their
interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Check, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import sample_declaration, sample_job, sample_member

MIN_DIFFERENCES = 2
"""Consecutive comparisons that must differ before it is reported."""


def check(view: JobView) -> Iterator[Claim]:
    members = tuple(m for m in view.alive if not m.launcher and m.checks)
    if len(members) < 2 or len(members) != sum(1 for m in view.alive if not m.launcher):
        return
    if any(m.declared is not None and m.declared.world_size != len(members) for m in members):
        return  # not the whole job, or several jobs that train a model each
    digests: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for checked in members:
        for comparison in checked.checks:
            digests[comparison.step, comparison.parameter][checked.event_key] = comparison.digest
    complete = sorted(k for k, by in digests.items() if len(by) == len(members))
    differs = [len(set(digests[k].values())) > 1 for k in complete]
    if len(complete) >= MIN_DIFFERENCES and all(differs[-MIN_DIFFERENCES:]):
        first_index = next(i for i in range(len(differs)) if all(differs[i:]))
        yield _claim(members, complete, first_index, digests[complete[first_index]])


def _claim(
    members: tuple[Member, ...],
    complete: list[tuple[int, int]],
    first_index: int,
    digests: dict[int, int],
) -> Claim:
    common_digest, common_count = Counter(digests.values()).most_common(1)[0]
    has_majority = common_count * 2 > len(members)
    diverged = tuple(
        m for m in members if not has_majority or digests[m.event_key] != common_digest
    )
    step, parameter = complete[first_index]
    last_equal = (
        (f"the same on all at step {complete[first_index - 1][0]}")
        if first_index
        else "no earlier comparison"
    )
    return Claim(
        summary=f"the parameters of {name_members(diverged)} have diverged from the others' by step {step}"
        if has_majority
        else f"the ranks' parameters have diverged by step {step}",
        who=tuple(m.who for m in diverged),
        evidence=(
            Evidence(
                ", ".join(f"rank {m.who.rank} {digests[m.event_key]:08x}" for m in members[:8]),
                f"parameter {parameter} of the model in DDP, after step {step}",
            ),
            Evidence(
                f"{last_equal}; {len(complete) - first_index} comparisons differ since", "black box"
            ),
        ),
        fix="look for what only some ranks do to the model after DDP was built: a checkpoint loaded, "
        "no_sync(), model.module",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _checked(rank: int, *digests: int, size: int = 3) -> Member:
    checks = tuple(Check(10 * n, n % 2, d) for n, d in enumerate(digests, 1))
    return sample_member(rank, checks=checks, declared=sample_declaration(rank, size))


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("checks",),
    fires_on={
        "the parameters of one of three ranks have diverged": (
            sample_job(_checked(0, 1, 2, 3), _checked(1, 1, 7, 8), _checked(2, 1, 2, 3)),
            "the parameters of worker 1 have diverged from the others' by step 20",
        ),
        "the parameters of two ranks have diverged": (
            sample_job(_checked(0, 1, 2, 3, size=2), _checked(1, 1, 7, 8, size=2)),
            "the ranks' parameters have diverged by step 20",
        ),
    },
    silent_on={
        "the parameters of all ranks are equal": sample_job(
            *(_checked(r, 1, 2, 3) for r in range(3))
        ),
        "the parameters differed once, and are equal again": sample_job(
            _checked(0, 1, 2, 3), _checked(1, 1, 7, 3), _checked(2, 1, 2, 3)
        ),
        "one rank has yet to make the last comparison": sample_job(
            _checked(0, 1, 2, 3), _checked(1, 1, 2), _checked(2, 1, 2, 3)
        ),
        "two jobs side by side, each with a model of its own": sample_job(
            *(_checked(r, 1, 2, 3, size=2) for r in (0, 1)),
            *(_checked(r, 4, 5, 6, size=2) for r in (2, 3)),
        ),
        "no parameters were compared": sample_job(
            sample_member(0), sample_member(1), sample_member(2)
        ),
    },
    retry=Retry.HERE,
    drill=("parted",),
)
