"""What ibstat, ibstatus and perfquery say of adapters; worded as rdma-core's source words it."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.instruments import infiniband_ports
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit
from allaboard.facts.instruments.hardware import FabricPort
from allaboard.rules.engine.catalogue import load_catalogue

IBSTAT = (
    "CA '{device}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n"
    "\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: {lid}\n"
    "\t\tLMC: 0\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n"
)
IBSTATUS = (
    "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:b859:9f03:00d4:1e2a\n"
    "\tbase lid:\t 0xc\n\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n\n"
)
COUNTERS = (
    "# Port counters: Lid 12 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\n"
    "CounterSelect:...................0x0000\nSymbolErrorCounter:..............{symbols}\n"
    "LinkErrorRecoveryCounter:........0\nLinkDownedCounter:...............1\n"
    "PortRcvErrors:...................0\nPortXmitDiscards:................7\n"
    "PortXmitData:....................123456789\n"
)


def ibstat(device: str = "mlx5_0", state: str = "Active", rate: int = 400) -> str:
    physical = "LinkUp" if state != "Down" else "Disabled"
    return IBSTAT.format(device=device, state=state, physical=physical, rate=rate, lid=12)


def ports(text: str) -> tuple[FabricPort, ...]:
    testimony = infiniband_ports.read_log(Exhibit(name="a", data=text.encode()))
    return testimony.hardware.ports if testimony is not None else ()


def test_ports_are_read_of_ibstat_with_their_lines() -> None:
    first_port, second_port = ports(ibstat() + ibstat("mlx5_1", "Down", 10))
    assert (first_port.device, first_port.state, first_port.physical) == (
        "mlx5_0",
        "Active",
        "LinkUp",
    )
    assert (first_port.rate, first_port.lid, first_port.layer) == ("400", 12, "InfiniBand")
    assert (second_port.device, second_port.state, second_port.place.line) == ("mlx5_1", "Down", 17)


def test_ibstatus_says_the_same_in_other_words() -> None:
    (port,) = ports(IBSTATUS)
    assert (port.device, port.port, port.state, port.physical) == ("mlx5_0", 1, "Active", "LinkUp")
    assert (port.rate, port.lid, port.layer) == ("400", 12, "InfiniBand")


def test_counters_of_errors_are_read_and_no_others() -> None:
    (port,) = ports(COUNTERS.format(symbols=3))
    assert dict(port.counters) == {
        "SymbolErrorCounter": 3,
        "LinkErrorRecoveryCounter": 0,
        "LinkDownedCounter": 1,
        "PortRcvErrors": 0,
        "PortXmitDiscards": 7,
    }


@pytest.mark.parametrize(
    "text", ["CA 'mlx5_0'\n", "no counters: here\n", "Port 1:\n\tState: Active\n"]
)
def test_other_texts_are_not_theirs(text: str) -> None:
    assert ports(text) == ()


def found(folder: Path, texts: dict[str, str]) -> list[tuple[str, str]]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [(f.rule, f.summary) for f in diagnose_paths([folder], load_catalogue()).findings]


def test_the_host_whose_port_is_down_is_named_by_its_file(tmp_path: Path) -> None:
    healthy = ibstat() + ibstat("mlx5_1")
    texts = {
        "node0.txt": healthy,
        "node1.txt": healthy,
        "node2.txt": ibstat() + ibstat("mlx5_1", "Down"),
    }
    ((rule, summary),) = found(tmp_path, texts)
    assert rule == "HW003" and "mlx5_1" in summary and "node2.txt is down" in summary


def test_counters_that_grow_are_told_of_the_adapter_that_ibstat_names(tmp_path: Path) -> None:
    texts = {
        "ibstat.txt": ibstat(),
        "perfquery-1.txt": COUNTERS.format(symbols=3),
        "perfquery-2.txt": COUNTERS.format(symbols=30),
    }
    ((rule, summary),) = found(tmp_path, texts)
    assert rule == "HW004" and "mlx5_0" in summary and "SymbolErrorCounter 3 to 30" in summary


def test_an_ordinary_fabric_says_nothing(tmp_path: Path) -> None:
    assert (
        found(tmp_path, {"ibstat.txt": ibstat(), "perfquery.txt": COUNTERS.format(symbols=3)}) == []
    )
