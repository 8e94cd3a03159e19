"""An NCCL variable asks for hardware that this host lacks, or has a value that NCCL cannot read.

## Why it matters
With `NCCL_IB_HCA=mlx5_1` on a host without that device, NCCL there falls back to TCP, or fails, while the
other hosts use InfiniBand: the first collective hangs. `NCCL_IB_DISABLE=true` does not mean 1: NCCL reads a
number, and takes this for 0.

## What to do
List the devices with `ls /sys/class/infiniband`, and give every host the same variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, LocalHost, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts

_SWITCHES = ("NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
_WORD_VALUES = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for name in _SWITCHES:
        value = facts.variables.get(name)
        if value is not None and value.text.strip().lower() in _WORD_VALUES:
            right = _WORD_VALUES[value.text.strip().lower()]
            yield Claim(
                summary=f"{name} is {value.text!r}; NCCL reads a number there",
                who=own_member(facts.spec),
                evidence=(value.evidence,),
                fix=f"export {name}={right}",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=value.origin.editor_place,
            )
    host, chosen = facts.host, facts.variables.get("NCCL_IB_HCA")
    off = facts.variables.get("NCCL_IB_DISABLE")
    if host is None or chosen is None or (off is not None and off.text.strip() == "1"):
        return
    text = chosen.text.strip()
    if not text or text.startswith("^"):
        return
    exact = text.startswith("=")
    device_names = [w.partition(":")[0] for w in text.lstrip("=").split(",") if w]
    for device_name in device_names:
        if any(d == device_name if exact else d.startswith(device_name) for d in host.infiniband):
            return
    yield Claim(
        summary=f"NCCL_IB_HCA names {text!r}; this host has "
        + (", ".join(host.infiniband) or "no InfiniBand device"),
        who=own_member(facts.spec),
        evidence=(
            chosen.evidence,
            Evidence(", ".join(host.infiniband) or "none", "/sys/class/infiniband"),
        ),
        fix=f"export NCCL_IB_HCA={host.infiniband[0]}"
        if host.infiniband
        else "unset NCCL_IB_HCA; export NCCL_IB_DISABLE=1   # on every host",
        severity=Severity.WARNING,
    )


def _facts(devices: tuple[str, ...] = (), **variables: str) -> ConfigFacts:
    return sample_config_facts(rank="0", variables=variables, host=LocalHost(infiniband=devices))


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "NCCL_IB_DISABLE is a word instead of a number": (
            _facts(NCCL_IB_DISABLE="true"),
            "NCCL_IB_DISABLE is 'true'; NCCL reads a number there",
        ),
        "NCCL_IB_HCA names a device that the host lacks": (
            _facts(("mlx5_0",), NCCL_IB_HCA="mlx4_0"),
            "NCCL_IB_HCA names 'mlx4_0'; this host has mlx5_0",
        ),
    },
    silent_on={
        "NCCL_IB_HCA is the prefix of a device's name": _facts(("mlx5_0",), NCCL_IB_HCA="mlx5"),
        "NCCL_IB_HCA names a device while InfiniBand is switched off": _facts(
            NCCL_IB_HCA="mlx5", NCCL_IB_DISABLE="1"
        ),
    },
)
