"""A manifest starts another number of pods than it tells them that there are.

## Why it matters
A literal WORLD_SIZE, a TF_CONFIG or `--nnodes` in the pod template is not adjusted when somebody
changes `replicas`. With more pods than the world size two of them claim one rank or one is
refused; with fewer, all wait for pods that nobody starts. Training operators set these variables
themselves.

## What to do
Make the numbers equal, or remove the variable and let the operator set it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import (
    Claim,
    ManifestFacts,
    Origin,
    Role,
    Severity,
    Stage,
    Value,
    Workload,
)

_ONE = {"PyTorchJob": "Master", "MPIJob": "Launcher", "TFJob": "Chief"}
"""The role of each kind that the operators take one pod of."""


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        total, per = _processes(workload)
        if total is None:
            continue
        for role in workload.roles:
            yield from _one(workload, role)
            size = role.env.get("WORLD_SIZE")
            # One process a pod, or as many as the workload says; anything between is not known.
            if size is not None and size.integer is not None and size.integer not in (
                total, total * per,
            ):  # fmt: skip
                yield _claim(workload, size, role.replicas, total, str(total * per))
            nodes = _flag(role.command, "--nnodes")
            if nodes is not None and nodes.integer is not None and nodes.integer != total:
                yield _claim(workload, nodes, role.replicas, total, str(total))
        yield from _completions(workload)


def _processes(workload: Workload) -> tuple[int | None, int]:
    """Training pods of the workload and processes in each; None where a count is no number."""
    counts = [
        r.replicas.integer for r in workload.roles if r.name not in ("Launcher", "Evaluator", "PS")
    ]
    if not counts or any(c is None for c in counts) or workload.elastic:
        return None, 1
    if workload.kind == "JobSet" and len(counts) > 1:
        return None, 1
    per = workload.per_node.integer if workload.per_node is not None else 1
    total = workload.completions.integer if workload.completions is not None else None
    return total or sum(c for c in counts if c is not None), per or 1


def _one(workload: Workload, role: Role) -> Iterator[Claim]:
    count = role.replicas.integer
    if _ONE.get(workload.kind) == role.name and count is not None and count > 1:
        yield Claim(
            summary=f"{workload.kind} {workload.name} has {count} {role.name} replicas; "
            "the operator takes one",
            evidence=(role.replicas.evidence,),
            fix="replicas: 1   # and the others under Worker",
            where=role.replicas.origin.place,
        )


def _completions(workload: Workload) -> Iterator[Claim]:
    """An indexed Job whose pods do not all run at the same time cannot meet."""
    together, total = workload.parallelism, workload.completions
    if not workload.indexed or total is None or total.integer is None:
        return
    count = together.integer if together is not None else 1
    if count is None or count >= total.integer:
        return
    value = together or total
    yield Claim(
        summary=f"Job {workload.name} runs {count} of its {total.integer} pods at a time: "
        "the others start when these have ended, and these wait for them",
        evidence=(value.evidence, total.evidence),
        fix=f"parallelism: {total.integer}",
        severity=Severity.ERROR if "WORLD_SIZE" in _names(workload) else Severity.WARNING,
        where=value.origin.place,
    )


def _names(workload: Workload) -> set[str]:
    return {name for role in workload.roles for name in role.env}


def _flag(words: tuple[Value, ...], flag: str) -> Value | None:
    for at, word in enumerate(words):
        if word.text == flag and at + 1 < len(words):
            return words[at + 1]
        if word.text.startswith(flag + "="):
            return Value(word.text.partition("=")[2], word.origin)
    return None


def _claim(workload: Workload, told: Value, replicas: Value, total: int, right: str) -> Claim:
    name = told.origin.variable or "--nnodes"
    return Claim(
        summary=f"{name} is {told.text}, and {workload.kind} {workload.name} starts {total} "
        f"pod{'s' if total != 1 else ''}",
        evidence=(told.evidence, replicas.evidence),
        fix=f'{name}: "{right}"' if told.origin.variable else f"--nnodes={right}",
        where=told.origin.place,
    )


def _job(replicas: str, size: str, per: str = "") -> ManifestFacts:
    at = Origin(file="job.yaml", line=9, column=17)
    role = Role(
        name="Worker",
        replicas=Value(replicas, at),
        env={"WORLD_SIZE": Value(size, Origin(variable="WORLD_SIZE", file="job.yaml", line=20))},
    )
    each = Value(per, at) if per else None
    return ManifestFacts(
        workloads=(Workload(kind="PyTorchJob", name="mnist", roles=(role,), per_node=each),)
    )


RULE = Rule(
    stage=Stage.CONFIG,
    reads=ManifestFacts,
    check=check,
    fires_on={
        "too few pods": (
            _job("3", "4"),
            "WORLD_SIZE is 4, and PyTorchJob mnist starts 3 pods",
        )
    },
    silent_on={
        "equal": _job("4", "4"),
        "processes in each": _job("2", "16", per="8"),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
