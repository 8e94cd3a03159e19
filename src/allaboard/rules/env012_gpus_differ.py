"""Hosts have different GPUs, or a host has fewer GPUs than ranks.

At the roll call each host reports how many NVIDIA devices it has (/dev/nvidia*), and their models. Reported
are hosts with fewer of them than ranks in a job whose backend is NCCL, which needs a GPU for each rank; and
hosts whose models differ from those of most hosts. Hosts without any GPU, and jobs that do not use NCCL, are
left alone.

## Why it matters
A host of eight GPUs of which one has failed starts eight ranks all the same, and the last one ends with
"invalid device ordinal", minutes later and on one host only. With different models each step lasts as long as
on the slowest, and the batch that fits one does not fit another.

## What to do
`nvidia-smi -L` on that host; `dmesg | grep -i xid` tells whether a GPU has fallen off the bus. Ask the
scheduler for hosts of one kind (`--constraint` and `--gres=gpu:TYPE:N` in Slurm, node selectors in
Kubernetes), or start fewer ranks there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from allaboard.analysis.configuration.environment_drift import (
    example_side_by_side,
    find_fact_differences,
)
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity

COUNT, TYPE = "count GPUs", "type GPUs"
"""Names of the facts."""


def check(view: JobView) -> Iterator[Claim]:
    if not view.joined or not view.leads:
        return
    yield from _too_few(view)
    for _, difference in find_fact_differences(view, lambda name: name == TYPE):
        values = (difference.majority_value, *(value for value, _ in difference.deviations))
        members = difference.members
        if all(values) and all(map(_uses_nccl, members)):
            yield Claim(
                summary=f"the GPUs differ: {difference.description}",
                who=tuple(m.who for m in members[:8]),
                evidence=(Evidence(difference.description, "/proc/driver/nvidia/gpus"),),
                fix="nvidia-smi -L   # on each host; ask the scheduler for hosts of one kind",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
            )


def _too_few(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        by_host: dict[str, list[Member]] = defaultdict(list)
        for member in roll.held_members:
            if member.facts and _uses_nccl(member):
                by_host[member.who.host].append(member)
        for host, members in by_host.items():
            text = members[0].facts.get(COUNT, "")
            if text.isdecimal() and 0 < int(text) < len(members):
                yield _claim_too_few(host, int(text), members)


def _claim_too_few(host: str, count: int, members: list[Member]) -> Claim:
    gpus = "1 GPU" if count == 1 else f"{count} GPUs"
    return Claim(
        summary=f"{host} has {gpus} for {len(members)} ranks, and NCCL needs one for each",
        who=tuple(m.who for m in members[:8]),
        evidence=(Evidence(gpus, "/dev/nvidia*"),),
        fix=f"on {host}: nvidia-smi -L; dmesg | grep -i xid   # is one lost? else start fewer ranks there",
        certainty=Certainty.LIKELY,
    )


def _uses_nccl(member: Member) -> bool:
    """Return True for the backend "nccl" alone: "cpu:gloo,cuda:nccl" may never see a GPU."""
    return member.declared is not None and member.declared.backend == "nccl"


def _view(
    *counts: str, same_host: bool = False, backend: str = "nccl", types: bool = False
) -> JobView:
    view = example_side_by_side(TYPE if types else COUNT, *counts)
    members = []
    for member in view.members:
        assert member.declared is not None
        identity = msgspec.structs.replace(member.who, host="h0") if same_host else member.who
        declared = msgspec.structs.replace(member.declared, backend=backend)
        members.append(msgspec.structs.replace(member, who=identity, declared=declared))
    return msgspec.structs.replace(view, members=tuple(members))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a host with four ranks shows only three GPUs": (
            _view("3", "3", "3", "3", same_host=True),
            "h0 has 3 GPUs for 4 ranks, and NCCL needs one for each",
        ),
        "one host has GPUs of another model": (
            _view("4 x H100", "4 x H100", "4 x A100", "4 x H100", types=True),
            "the GPUs differ: h2 (rank 2) has 4 x A100, the others 4 x H100",
        ),
    },
    silent_on={
        "a host with as many GPUs as ranks": _view("4", "4", "4", "4", same_host=True),
        "a host on which no GPU is visible": _view("0", "0", "0", "0", same_host=True),
        "a host with fewer GPUs than ranks, under gloo": _view(
            "3", "3", "3", "3", same_host=True, backend="gloo"
        ),
        "one rank on each host, and different numbers of GPUs": _view("1", "8", "8", "8"),
        "one host reports no model of its GPUs": _view(
            "4 x H100", "4 x H100", "", "4 x H100", types=True
        ),
    },
    unstaged="needs GPUs; made from what their driver shows in /dev and /proc",
)
