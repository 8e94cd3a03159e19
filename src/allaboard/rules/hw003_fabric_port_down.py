"""A port of an InfiniBand or RoCE adapter is down, or slower, while it is in use on the other hosts.

## Why it matters
NCCL takes the adapters that it finds active. A rank on a host that lacks one uses a slower path,
such as the host's ordinary Ethernet, or none at all: the whole job runs at its pace, or its start fails with
a timeout.

## What to do
On that host: `ibstat`, `dmesg -T | grep -i mlx5`, the cable, and the switch's port. "Initializing" means
that no subnet manager has configured the port: `sminfo` on any host shows whether one runs. NCCL_IB_HCA
leaves out an adapter until it is mended. Give `ibstat` of all hosts, each in a file of its own: a port
that is down on one host alone is what is reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Stage
from allaboard.facts.instruments.hardware import FabricPort, Hardware

MIN_OTHERS = 2
"""Hosts on which the same port must be active: of two that differ, either may be as intended."""
_FIX = "on that host: ibstat; dmesg -T | grep -iE 'mlx|infiniband|link'; then the cable and the switch's port"


def check(hardware: Hardware) -> Iterator[Claim]:
    by_host: dict[str, list[FabricPort]] = defaultdict(list)
    for port in hardware.ports:
        if port.state:
            by_host[port.host or port.place.file].append(port)
    for host, ports in by_host.items():
        if not any(_is_active(p) for p in ports):
            yield _claim(ports, f"no port of the adapters of {host} is active")
            continue
        peers = [p for other, theirs in by_host.items() if other != host for p in theirs]
        for port in ports:
            same_ports = [p for p in peers if (p.device, p.port) == (port.device, port.port)]
            yield from _compare(host, port, same_ports)


def _is_active(port: FabricPort) -> bool:
    return port.state.lower() == "active"


def _compare(host: str, port: FabricPort, same_ports: list[FabricPort]) -> Iterator[Claim]:
    """Yield what is wrong with a port that the other hosts have too."""
    active = [p for p in same_ports if _is_active(p)]
    name = f"port {port.port} of {port.device} on {host}"
    if port.state.lower() in ("initializing", "init", "armed"):
        yield _claim([port], f"{name} waits for a subnet manager ({port.state})")
    elif not _is_active(port) and len(active) >= MIN_OTHERS and 2 * len(active) > len(same_ports):
        yield _claim(
            [port], f"{name} is {port.state.lower()}; on {len(active)} other hosts it is active"
        )
    elif _is_active(port) and len(active) >= MIN_OTHERS:
        rate, count = Counter(p.rate for p in active).most_common(1)[0]
        if count == len(active) and _number(port.rate) < _number(rate):
            yield _claim(
                [port], f"{name} runs at {port.rate} Gbit/s; on other hosts at {rate}", True
            )


def _number(rate: str) -> float:
    try:
        return float(rate)
    except ValueError:
        return 0.0


def _claim(ports: list[FabricPort], summary: str, is_slow: bool = False) -> Claim:
    return Claim(
        summary=summary,
        evidence=tuple(
            Evidence(
                f"{p.device} port {p.port}: {p.state}, {p.physical}, {p.rate} Gbit/s, {p.layer}",
                str(p.place),
            )
            for p in ports[:4]
        ),
        fix=_FIX,
        severity=Severity.WARNING if is_slow else Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _port(
    host: str, state: str = "Active", device: str = "mlx5_0", rate: str = "400"
) -> FabricPort:
    physical = "LinkUp" if state != "Down" else "Polling"
    return FabricPort(
        device=device,
        port=1,
        state=state,
        physical=physical,
        layer="InfiniBand",
        rate=rate,
        host=host,
        place=Place(file=f"{host}.txt", line=10),
    )


RULE = Rule(
    stage=Stage.NETWORK,
    reads=Hardware,
    check=check,
    fires_on={
        "a port is down on one of three hosts": (
            Hardware(
                ports=(
                    *(_port(h) for h in ("a", "b", "c")),
                    *(_port(h, device="mlx5_1") for h in ("a", "b")),
                    _port("c", "Down", "mlx5_1"),
                )
            ),
            "port 1 of mlx5_1 on c is down; on 2 other hosts it is active",
        ),
        "no port of a host is active": (
            Hardware(ports=(_port("a", "Down"), _port("a", "Down", "mlx5_1"))),
            "no port of the adapters of a is active",
        ),
        "a port waits for a subnet manager": (
            Hardware(ports=(_port("a", "Initializing"), _port("a", device="mlx5_1"))),
            "port 1 of mlx5_0 on a waits for a subnet manager (Initializing)",
        ),
        "a port is slower on one of three hosts": (
            Hardware(ports=(_port("a"), _port("b"), _port("c", rate="200"))),
            "port 1 of mlx5_0 on c runs at 200 Gbit/s; on other hosts at 400",
        ),
    },
    silent_on={
        "a port is down on the only host that is known": Hardware(
            ports=(_port("a"), _port("a", "Down", "mlx5_1"))
        ),
        "a port is down on all hosts, so it is not used": Hardware(
            ports=tuple(p for h in "abc" for p in (_port(h), _port(h, "Down", "mlx5_1")))
        ),
        "a port is down on one of two hosts": Hardware(
            ports=(
                _port("a"),
                _port("a", device="mlx5_1"),
                _port("b"),
                _port("b", "Down", "mlx5_1"),
            )
        ),
        "all ports are active": Hardware(ports=tuple(map(_port, "abc"))),
    },
    unstaged="it needs InfiniBand adapters; its inputs are from the tools' source",
)
