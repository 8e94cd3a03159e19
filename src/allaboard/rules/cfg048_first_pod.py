"""The pods do not meet at the pod that has rank 0.

## Why it matters
Rank 0 opens the store in its own pod. If each pod takes its rank from the end of its name, rank 0 is pod
NAME-0. With NAME-1 as MASTER_ADDR, rank 0 listens in one pod, and all others connect to another.

## What to do
Put pod 0's name into the address: `MASTER_ADDR=train-0.train`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ManifestFacts, Origin, Role, Value, Workload
from allaboard.facts.address import join_host_port, parse_address

_RANK_VARIABLES = ("RANK", "NODE_RANK", "PET_NODE_RANK", "JAX_PROCESS_ID")
_ADDRESS_VARIABLES = ("MASTER_ADDR", "PET_MASTER_ADDR", "JAX_COORDINATOR_ADDRESS")
_ORDINAL = r"\$\{\w+##\*-\}|\$\(hostname *\| *[^)|]+\)|\$\{?JOB_COMPLETION_INDEX\}?"
_RANK_FROM_ORDINAL = re.compile(
    rf"\b(?:RANK|NODE_RANK|JAX_PROCESS_ID)=[\"']?(?:{_ORDINAL})[\"']?(?=[\s;&]|\Z)"
    rf"|--(?:node[-_])?rank[= ][\"']?(?:{_ORDINAL})[\"']?(?=[\s;&]|\Z)"
)
"""A rank that is exactly the pod's ordinal, not a sum or difference."""
_MASTER_ADDRESS = re.compile(r"--master[-_]addr[= ]([\w.-]+)|\bMASTER_ADDR=[\"']?([\w.-]+)")


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        if workload.kind not in ("StatefulSet", "Job") or not workload.name or workload.first_pod:
            continue
        for role in workload.roles:
            if not _ranks_by_ordinal(role):
                continue
            for value in _master_addresses(role):
                yield from _check_address(workload, value)


def _ranks_by_ordinal(role: Role) -> bool:
    text = " ".join(w.text for w in role.command)
    if "c10d" in text:
        return False  # any pod may host the rendezvous
    return (
        any(name in role.computed for name in _RANK_VARIABLES)
        or _RANK_FROM_ORDINAL.search(text) is not None
    )


def _master_addresses(role: Role) -> Iterator[Value]:
    yield from (role.env[name] for name in _ADDRESS_VARIABLES if name in role.env)
    for argument in role.command:
        for match in _MASTER_ADDRESS.finditer(argument.text):
            at = argument.origin
            name = "--master-addr" if match[1] else "MASTER_ADDR"
            origin = Origin(flag=name, file=at.file, line=at.line, column=at.column)
            yield Value(match[1] or match[2], origin)


def _check_address(workload: Workload, value: Value) -> Iterator[Claim]:
    parsed = parse_address(value.text)
    pod, _, domain = parsed.host.partition(".")
    match = re.fullmatch(re.escape(workload.name) + r"-(\d+)", pod)
    if match is None or int(match[1]) == 0:
        return
    correct_name = f"{workload.name}-0" + (f".{domain}" if domain else "")
    correct_address = join_host_port(correct_name, parsed.port) if parsed.port else correct_name
    yield Claim(
        summary=f"{value.origin.name} is {value.text}, but rank 0 runs in {workload.name}-0: each pod's rank "
        "is the number in its name",
        evidence=(value.evidence, Value(workload.name, workload.origin).evidence),
        fix=f"{value.origin.name}={correct_address}",
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _facts(
    address: str, script: str = "RANK=${HOSTNAME##*-} python t.py", first_ordinal: str = ""
) -> ManifestFacts:
    address_value = Value(address, Origin(variable="MASTER_ADDR", file="job.yaml", line=18))
    command = (Value("sh"), Value("-c"), Value(script))
    role = Role(name="", replicas=Value("3"), env={"MASTER_ADDR": address_value}, command=command)
    workload = Workload(kind="StatefulSet", name="train", roles=(role,), first_pod=first_ordinal)
    return ManifestFacts(workloads=(workload,))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "the ranks meet at the second pod of a StatefulSet": (
            _facts("train-1.train.default.svc"),
            "MASTER_ADDR is train-1.train.default.svc, but rank 0 runs in train-0: each pod's rank is the "
            "number in its name",
        )
    },
    silent_on={
        "the ranks meet at the first pod": _facts("train-0.train"),
        "the ranks meet at a pod of another workload": _facts("head-1.head"),
        "ranks that the command computes from the pod's number": _facts(
            "train-1.train", "RANK=$((2 - ${HOSTNAME##*-})) python t.py"
        ),
        "a c10d rendezvous, whose endpoint may be any pod": _facts(
            "train-1.train", "torchrun --rdzv-backend=c10d --node-rank=${HOSTNAME##*-} t.py"
        ),
        "a StatefulSet whose pods are numbered from 1": _facts("train-1.train", first_ordinal="1"),
    },
)
