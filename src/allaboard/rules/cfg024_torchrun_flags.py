"""torchrun's flags cannot work together, or one of them has an impossible value.

## Why it matters
With `--nnodes=2` and no address, each node's torchrun meets at its own 127.0.0.1 and silently waits for the
other. `--standalone` ignores every option for more nodes: each node trains alone. Without
`--node-rank`, a static rendezvous takes every node for node 0.

## What to do
Start the same command on every node, with `--rdzv-backend=c10d --rdzv-endpoint=FIRST-HOST:29500`; then no
node needs a number.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.configuration.spec import likely_mistake
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Origin, PartialSpec, Problem, Value
from allaboard.facts.configuration.config_facts import sample_config_facts

_OPERATOR_JOBS = ("PyTorchJob", "TrainJob")
"""Kinds of Kubernetes jobs whose operator sets PET_MASTER_ADDR and PET_NODE_RANK, which torchrun reads."""
_C10D = "--rdzv-backend=c10d --rdzv-endpoint=FIRST-HOST:29500"


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(facts.problems, "flags")
    for part in facts.parts:
        if part.source == "torchrun":
            yield from _check_flags(facts, part)


def _check_flags(facts: ConfigFacts, part: PartialSpec) -> Iterator[Claim]:
    nodes = part.values.get("nnodes")
    fewest = Value(nodes.text.partition(":")[0]).integer if nodes is not None else None
    if nodes is None or fewest is None or fewest < 2:
        return
    if "standalone" in part.values:
        yield likely_mistake(
            f"--standalone with {fewest} nodes: each node trains alone",
            (nodes, part.values["standalone"]),
            f"torchrun --nnodes={nodes.text} {_C10D} …   # without --standalone",
        )
        return
    backend = part.values.get("rdzv_backend")
    static = backend is None or backend.text in ("static", "")
    # PET_* variables alone: the command, which may say more, is not known here.
    if facts.kind == "environment" or facts.workload in _OPERATOR_JOBS:
        return
    if "rdzv_endpoint" not in part.values and "master_addr" not in part.values:
        yield likely_mistake(
            f"{fewest} nodes but no rendezvous address: each node waits at its own 127.0.0.1",
            (nodes,),
            f"torchrun --nnodes={nodes.text} {_C10D} …",
        )
        return
    if static and "node_rank" not in part.values:
        yield likely_mistake(
            f"{fewest} nodes with a static rendezvous but no --node-rank: every node is node 0",
            (nodes,),
            f"torchrun --nnodes={nodes.text} {_C10D} …   # or --node-rank=0, 1, … by hand",
        )


def _job_manifest(kind: str) -> ConfigFacts:
    return msgspec.structs.replace(_flags("manifest", nnodes="2"), workload=kind)


def _flags(kind: str = "shell", **values: str) -> ConfigFacts:
    return sample_config_facts(kind, source="torchrun", values=values)


_BAD_NNODES = Problem(
    kind="flags",
    message="--nnodes cannot be 'two'",
    observed="--nnodes two",
    correction="2 or 1:4 (fewest:most)",
    origin=Origin(flag="--nnodes", file="run.sh", line=3, column=10),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "two nodes without a rendezvous address": (
            _flags(nnodes="2"),
            "2 nodes but no rendezvous address: each node waits at its own 127.0.0.1",
        ),
        "`--standalone` together with two nodes": (
            _flags(nnodes="2", standalone="1"),
            "--standalone with 2 nodes: each node trains alone",
        ),
        "a static rendezvous of two nodes without `--node-rank`": (
            _flags(nnodes="2", master_addr="a"),
            "2 nodes with a static rendezvous but no --node-rank: every node is node 0",
        ),
        "a plain Kubernetes Job of two nodes without a rendezvous address": (
            _job_manifest("Job"),
            "2 nodes but no rendezvous address: each node waits at its own 127.0.0.1",
        ),
        "`--nnodes` is a word instead of a number": (
            sample_config_facts(problems=(_BAD_NNODES,)),
            "--nnodes cannot be 'two'",
        ),
    },
    silent_on={
        "torchrun on one node": _flags(nnodes="1"),
        "two nodes with a c10d rendezvous and its endpoint": _flags(
            nnodes="2", rdzv_backend="c10d", rdzv_endpoint="a:29500"
        ),
        "an elastic job of 1 to 4 nodes, which may start with one": _flags(nnodes="1:4"),
        "a TrainJob of two nodes, whose operator sets the address": _job_manifest("TrainJob"),
        "a node rank that the shell computes": _flags(nnodes="2", master_addr="a", node_rank=""),
    },
)
