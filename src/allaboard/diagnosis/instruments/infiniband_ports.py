"""`ibstat`, `ibstatus` and `perfquery`: the ports of InfiniBand and RoCE adapters, and their error counters.

Written from the source of infiniband-diags in rdma-core (ibstat.c, ibstatus, perfquery.c), not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import FabricPort, Hardware

MAX_PORTS = 1024
"""Ports that are read of one exhibit."""
ERROR_COUNTERS = frozenset(
    {
        "SymbolErrorCounter",
        "LinkErrorRecoveryCounter",
        "LinkDownedCounter",
        "PortRcvErrors",
        "PortXmitDiscards",
        "LocalLinkIntegrityErrors",
        "ExcessiveBufferOverrunErrors",
    }
)
"""Counters of perfquery that count errors of the link."""
_ADAPTER = re.compile(r"^CA '(?P<device>[\w.-]{1,64})'$", re.M)
_PORT = re.compile(r"^[ \t]+Port (?P<port>\d{1,3}):$", re.M)
_STATUS_HEAD = re.compile(
    r"^Infiniband device '(?P<device>[\w.-]{1,64})' port (?P<port>\d{1,3}) status:$", re.M
)
_COUNTERS_HEAD = re.compile(
    r"^# Port (?:extended )?counters: (?P<device>Lid \d+|\S+) port (?P<port>\d{1,3})\b[^\n]*$", re.M
)
_COUNTER = re.compile(r"^(?P<name>\w+):\.*(?P<value>\d{1,20})$", re.M)
_NUMBERED = re.compile(r"^\d+: ")
"""Matches the number that ibstatus writes before a state's name."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "CA '" not in text and "Infiniband device '" not in text and " counters: " not in text:
        return None
    ports = [
        *_read_ibstat(exhibit, text),
        *_read_ibstatus(exhibit, text),
        *_read_counters(exhibit, text),
    ]
    return Testimony(hardware=Hardware(ports=tuple(ports[:MAX_PORTS]))) if ports else None


def _value(block: str, *names: str) -> str:
    for name in names:
        match = re.search(rf"^\s+{name}:\s*([^\n]*)$", block, re.M)
        if match is not None:
            return _NUMBERED.sub("", match[1].strip())
    return ""


def _blocks(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield every heading with the text up to the next one."""
    heads = list(pattern.finditer(text))
    ends = [*(h.start() for h in heads[1:]), len(text)][: len(heads)]
    yield from ((head, text[head.end() : end]) for head, end in zip(heads, ends, strict=True))


def _read_ibstat(exhibit: Exhibit, text: str) -> Iterator[FabricPort]:
    for adapter, block in _blocks(_ADAPTER, text):
        for head, port_block in _blocks(_PORT, block):
            lines_before = text.count("\n", 0, adapter.end() + head.start() + 1)
            yield _port(exhibit, adapter["device"], int(head["port"]), port_block, lines_before)


def _read_ibstatus(exhibit: Exhibit, text: str) -> Iterator[FabricPort]:
    for head, block in _blocks(_STATUS_HEAD, text):
        lines_before = text.count("\n", 0, head.start())
        yield _port(exhibit, head["device"], int(head["port"]), block, lines_before)


def _port(exhibit: Exhibit, device: str, port: int, block: str, lines_before: int) -> FabricPort:
    lid = _value(block, "Base lid", "base lid")
    return FabricPort(
        device=device,
        port=port,
        state=_value(block, "State", "state").capitalize(),
        physical=_value(block, "Physical state", "phys state"),
        layer=_value(block, "Link layer", "link_layer"),
        rate=_value(block, "Rate", "rate").partition(" ")[0],
        lid=int(lid, 16 if lid.startswith("0x") else 10)
        if re.fullmatch(r"0x[0-9a-f]+|\d+", lid)
        else 0,
        host=exhibit.host,
        place=exhibit.place_of_line(lines_before),
    )


def _read_counters(exhibit: Exhibit, text: str) -> Iterator[FabricPort]:
    for head, block in _blocks(_COUNTERS_HEAD, text):
        counters = tuple(
            (m["name"], int(m["value"]))
            for m in _COUNTER.finditer(block)
            if m["name"] in ERROR_COUNTERS
        )
        lid = int(head["device"][4:]) if head["device"].startswith("Lid ") else 0
        if counters:
            yield FabricPort(
                device=head["device"],
                port=int(head["port"]),
                lid=lid,
                counters=counters,
                host=exhibit.host,
                place=exhibit.place_of_line(text.count("\n", 0, head.start())),
            )


READER = LogReader(read=read_log)
