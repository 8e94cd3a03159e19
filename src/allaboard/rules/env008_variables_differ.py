"""A variable that changes how frameworks run is not the same on every host.

## Why it matters
`NCCL_*`, `GLOO_*`, `TF_*`, `XLA_*` and thread counts change how a rank talks and computes. Set on one host
only, they make init hang (another transport), or make every step as slow as that host.

## What to do
Set it on every host or on none: in the job script rather than in a shell profile.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.environment_drift import (
    example_side_by_side,
    find_fact_differences,
    group_by_members,
)
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Severity

HOST_SPECIFIC_ENDINGS = (
    "_SOCKET_IFNAME", "_IB_HCA", "_HOSTID", "_PATH", "_FILE", "_DIR", "_HOME", "_CACHE",
    "_LOG_LEVEL", "_VERBOSITY", "_DEBUG", "_DEBUG_SUBSYS", "_LOGS",
)  # fmt: skip
"""Endings of variables that may rightly differ between hosts: a host's own devices and paths, and how much it
logs. Under mpirun and ssh the first host has those of a login."""
HARMLESS_NAMES = (
    "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK",
    "PYTORCH_NVML_BASED_CUDA_CHECK", "CUDA_MODULE_LOADING", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
"""Variables whose values make no difference to other ranks. From KMP_DUPLICATE_LIB_OK on, libraries set them
for themselves and what they start: scikit-learn, Lightning, PyTorch, transformers."""
THREAD_PREFIXES = ("OMP_", "MKL_", "KMP_")
"""Beginnings of variables that set numbers of threads."""


def check(view: JobView) -> Iterator[Claim]:
    for variable_differences in group_by_members(
        find_fact_differences(view, _matters), _importance
    ):
        main = variable_differences[0]
        name = main.name.partition(" ")[2]
        other_names = ", ".join(d.name.partition(" ")[2] for d in variable_differences[1:])
        also = f"; and {other_names}" if other_names else ""
        effect = "ranks may not understand each other"
        if name.startswith(THREAD_PREFIXES):
            effect = "it slows its host"
        elif name.endswith("_proxy"):
            effect = (
                "gRPC (TensorFlow, JAX) connects through a proxy, which may not know the workers"
            )
        set_to = f"{name}={main.majority_value}" if main.majority_value else f"unset {name}"
        yield Claim(
            summary=f"{name} differs: {main.description}{also}; {effect}",
            who=tuple(m.who for m in main.members),
            evidence=tuple(
                Evidence(f"{d.name.partition(' ')[2]}={value or '(not set)'}", m.who.host)
                for d in variable_differences
                for value, members in d.deviations
                for m in members[:3]
            ),
            fix=f"set it on every host or on none; the majority has: {set_to}",
            severity=Severity.WARNING,
            certainty=Certainty.CERTAIN,
        )


def _matters(fact: str) -> bool:
    kind, _, name = fact.partition(" ")
    return kind == "variable" and not (
        name.endswith(HOST_SPECIFIC_ENDINGS) or name in HARMLESS_NAMES
    )


def _importance(fact: str) -> int:
    return (
        0
        if fact.endswith("_proxy")
        else 2
        if fact.partition(" ")[2].startswith(THREAD_PREFIXES)
        else 1
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "NCCL_IB_DISABLE is set on one host only": (
            example_side_by_side("variable NCCL_IB_DISABLE", "", "", "1", ""),
            "NCCL_IB_DISABLE differs: h2 (rank 2) has 1, the others none; ranks may not understand "
            "each other",
        ),
        "`http_proxy` and NCCL_IB_DISABLE are set on one host only": (
            example_side_by_side(
                "variable NCCL_IB_DISABLE",
                "",
                "",
                "1",
                "",
                variable_http_proxy=("", "", "http://proxy:3128", ""),
            ),
            "http_proxy differs: h2 (rank 2) has http://proxy:3128, the others none; and NCCL_IB_DISABLE; "
            "gRPC (TensorFlow, JAX) connects through a proxy, which may not know the workers",
        ),
    },
    silent_on={
        "NCCL_IB_DISABLE has the same value on all hosts": example_side_by_side(
            "variable NCCL_IB_DISABLE", "1", "1", "1", "1"
        ),
        "a path of certificates that is set on one host only": example_side_by_side(
            "variable GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "/etc/ssl/certs/ca.crt", "", "", ""
        ),
        "NCCL_DEBUG is set on one host, which only logs more": example_side_by_side(
            "variable NCCL_DEBUG", "", "INFO", "", ""
        ),
        "KMP_INIT_AT_FORK, which a library sets by itself": example_side_by_side(
            "variable KMP_INIT_AT_FORK", "FALSE", "", "", ""
        ),
        "PYTORCH_NVML_BASED_CUDA_CHECK, which the rank that starts the others sets": example_side_by_side(
            "variable PYTORCH_NVML_BASED_CUDA_CHECK", "", "1", "1", "1"
        ),
        "NCCL_SOCKET_IFNAME, whose interface each host may name differently": example_side_by_side(
            "variable NCCL_SOCKET_IFNAME", "eth0", "ens3", "eth0", "eth0"
        ),
    },
    drill=("net-variables", "proxy-grpc"),
)
