"""A port of an InfiniBand adapter counts errors.

## Why it matters
A link with a bad cable or transceiver sends packets again, recovers, or goes down for a moment.
Collectives that cross it are slow, or end with "transport retry counter exceeded" (completion status 12).

## What to do
Clean or change the cable, and look at the switch's port. Counters count since they were reset, perhaps long
before this job: `perfquery -R` resets them; two outputs some minutes apart show whether they grow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Place, Severity, Stage
from allaboard.facts.instruments.hardware import FabricPort, Hardware

LARGE_COUNTS = {
    "SymbolErrorCounter": 100,
    "LinkErrorRecoveryCounter": 10,
    "LinkDownedCounter": 10,
    "PortRcvErrors": 100,
    "LocalLinkIntegrityErrors": 1,
    "ExcessiveBufferOverrunErrors": 1,
}
"""Counts from which one output is worth a word: some errors happen whenever a link comes up."""


def check(hardware: Hardware) -> Iterator[Claim]:
    readings: dict[tuple[str, str, int], list[FabricPort]] = defaultdict(list)
    for port in hardware.ports:
        if port.counters:
            # Lids are unique in the fabric; names of adapters are so on one host alone.
            where = "" if port.lid else port.host or port.place.file
            readings[where, port.device, port.port].append(port)
    for ports in readings.values():
        grown = _growth(ports)
        large = [f"{n} {c}" for n, c in ports[-1].counters if c >= LARGE_COUNTS.get(n, c + 1)]
        if grown:
            yield _claim(hardware, ports[-1], grown, Certainty.LIKELY, "grow")
        elif large and len(ports) == 1:
            yield _claim(hardware, ports[-1], large, Certainty.UNKNOWN, "are high")


def _growth(ports: list[FabricPort]) -> list[str]:
    """Return the counters that have grown from the first reading to the last."""
    begin = dict(ports[0].counters)
    return [
        f"{name} {begin[name]} to {count}"
        for name, count in ports[-1].counters
        if name in LARGE_COUNTS and name in begin and count > begin[name]
    ]


def _claim(
    hardware: Hardware, port: FabricPort, counters: list[str], certainty: Certainty, verb: str
) -> Claim:
    adapter = next((p for p in hardware.ports if port.lid and p.lid == port.lid and p.state), None)
    name = port.device
    if adapter is not None:
        name = f"{adapter.device} on {adapter.host or adapter.place.file} ({port.device})"
    evidence = [Evidence(c, str(port.place)) for c in counters[:4]]
    if certainty is Certainty.UNKNOWN:
        evidence.append(Evidence("when these errors happened", "what this does not prove"))
    return Claim(
        summary=f"errors of port {port.port} of {name} {verb}: {', '.join(counters[:2])}",
        evidence=tuple(evidence),
        fix="perfquery now and in five minutes: do they grow? then cable, transceiver and the switch's port",
        severity=Severity.WARNING,
        certainty=certainty,
    )


def _port(line: int = 1, **counters: int) -> FabricPort:
    return FabricPort(
        device="Lid 12",
        port=1,
        lid=12,
        counters=tuple(counters.items()),
        place=Place(file="perfquery.txt", line=line),
    )


_ADAPTER = FabricPort(
    device="mlx5_0", port=1, lid=12, state="Active", host="node7", place=Place(file="ibstat.txt")
)

RULE = Rule(
    stage=Stage.NETWORK,
    reads=Hardware,
    check=check,
    fires_on={
        "the errors of a port grow between two outputs of perfquery": (
            Hardware(
                ports=(_port(SymbolErrorCounter=3), _port(40, SymbolErrorCounter=9), _ADAPTER)
            ),
            "errors of port 1 of mlx5_0 on node7 (Lid 12) grow: SymbolErrorCounter 3 to 9",
        ),
        "the errors of a port are high in the only output of perfquery": (
            Hardware(ports=(_port(LinkErrorRecoveryCounter=50),)),
            "errors of port 1 of Lid 12 are high: LinkErrorRecoveryCounter 50",
        ),
    },
    silent_on={
        "a few errors, as they come with a link's start": Hardware(
            ports=(_port(SymbolErrorCounter=2, LinkDownedCounter=1),)
        ),
        "many errors that do not grow": Hardware(
            ports=(_port(SymbolErrorCounter=900), _port(40, SymbolErrorCounter=900))
        ),
        "packets that a port dropped because it was full": Hardware(
            ports=(_port(PortXmitDiscards=5000),)
        ),
    },
    unstaged="it needs InfiniBand adapters; its inputs are from the tools' source",
)
