"""Two members claim one identity: the same task, or the same rank.

## Why it matters
Until identities are right, nothing else can be trusted. If two tasks have one index, the second cannot
bind, or is never reached, and the others wait forever for the missing index. If two processes have
one rank, PyTorch's timeout names the *absent* rank, never the double one.

## What to do
Give one of the two the identity that is free.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.configuration.config_comparison import example_pasted_configs
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, ClusterSpec, Pasted, Value, Who, sample_config_facts


def check(facts: Pasted) -> Iterator[Claim]:
    first_claims: dict[tuple[str, int], tuple[str, Value]] = {}
    identities = {_identity(spec) for _, spec in facts.specs}
    for name, spec in facts.specs:
        identity, value = _identity(spec), _identity_value(spec)
        if identity is None or value is None:
            continue
        if identity not in first_claims:
            first_claims[identity] = (name, value)
            continue
        other_name, other_value = first_claims[identity]
        if identity[0] == "node" and other_value.origin.file != value.origin.file:
            continue  # two files may be two jobs; one script starts them at one time
        free = _free_index(spec, identity[0], identities)
        yield Claim(
            summary=f"{other_name} and {name} are both {identity[0]} {identity[1]}",
            who=(Who(job=identity[0], index=identity[1]),),
            evidence=(other_value.evidence, value.evidence),
            fix=f"give one of the two the index {free}" if free >= 0 else "leave one of them out",
            where=value.origin.editor_place,
        )


def _identity_value(spec: ClusterSpec) -> Value | None:
    if spec.index is not None:
        return spec.index
    return spec.values.get("rank") or (
        spec.values.get("node_rank") if _is_numbered_by_hand(spec) else None
    )


def _is_numbered_by_hand(spec: ClusterSpec) -> bool:
    """Return True if torchrun's nodes are identified by their --node-rank alone."""
    backend = spec.values.get("rdzv_backend")
    return spec.sources == ("torchrun",) and (backend is None or backend.text == "static")


def _identity(spec: ClusterSpec) -> tuple[str, int] | None:
    value = _identity_value(spec)
    if value is None or value.integer is None:
        return None
    if spec.index is not None:
        return (spec.job.text, value.integer) if spec.job is not None else None
    return "rank" if "rank" in spec.values else "node", value.integer


def _free_index(spec: ClusterSpec, job: str, identities: set[tuple[str, int] | None]) -> int:
    size = "nnodes" if job == "node" else "world_size"
    count = len(spec.cluster.get(job, ())) or spec.number(size) or 0
    return next((i for i in range(min(count, 10_000)) if (job, i) not in identities), -1)


_WORKERS = ["a:1", "b:1", "c:1"]


def _torchrun_nodes(*ranks: str, **values: str) -> Pasted:
    spec_values = {"nnodes": "2", "master_addr": "127.0.0.1", **values}
    return Pasted(
        specs=tuple(
            (
                f"run.sh:{line}",
                msgspec.structs.replace(
                    sample_config_facts("shell", node_rank=rank, values=spec_values).spec,
                    sources=("torchrun",),
                ),
            )
            for line, rank in enumerate(ranks, 2)
        )
    )


RULE = Rule(
    reads=Pasted,
    check=check,
    fires_on={
        "two of three members claim to be worker 1": (
            example_pasted_configs([_WORKERS] * 3, (0, 1, 1)),
            "node1.json and node2.json are both worker 1",
        ),
        "a script starts torchrun twice for node 0": (
            _torchrun_nodes("0", "0"),
            "run.sh:2 and run.sh:3 are both node 0",
        ),
    },
    silent_on={
        "each of three members has an index of its own": example_pasted_configs(
            [_WORKERS] * 3, (0, 1, 2)
        ),
        "a script starts torchrun for node 0 and for node 1": _torchrun_nodes("0", "1"),
        "two torchruns with node rank 0 and c10d, which assigns the numbers itself": _torchrun_nodes(
            "0", "0", rdzv_backend="c10d"
        ),
    },
    relations=Relations(follows_from=("JOIN005",)),
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
