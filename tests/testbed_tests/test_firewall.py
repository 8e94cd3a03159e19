"""Each block gives exactly the answer of the kernel that it promises, on real sockets."""

from __future__ import annotations

import pytest

from bedded import PORTS, Lab
from testbed import Block

pytestmark = pytest.mark.alone  # what is measured are seconds

FIRST, SECOND = PORTS
LARGE = 20_000


def test_nothing_is_in_the_way(lab: Lab) -> None:
    assert lab.dial(size=LARGE).startswith("answered")
    assert lab.dial(port=9) == "refused"


@pytest.mark.parametrize(
    ("block", "met"),
    [
        (Block(), "silence"),
        (Block(verdict="reset"), "refused"),
        (Block(verdict="unreachable"), "unreachable"),
        (Block(way="out"), "silence"),
        (Block(way="both", ports=(FIRST,)), "silence"),
        (Block(established=True), "silence once connected"),
        (Block(after=5_000), "silence once connected"),
        (Block(verdict="reset", after=5_000), "reset once connected"),
    ],
    ids=str,
)
def test_a_block_at_the_server(lab: Lab, block: Block, met: str) -> None:
    lab.bed.block("h0", block)
    wait_s = 3.0 if "once connected" in met else 1.0  # a slow machine may need a second to connect
    assert lab.dial(size=LARGE, wait=wait_s) == met
    assert lab.dial(to="h2").startswith("answered")


def test_the_hosts_own_loopback_passes(lab: Lab) -> None:
    lab.bed.block("h0", Block(way="both"))
    assert lab.dial("h0", to="localhost").startswith("answered")


def test_one_port_or_all_but_one(lab: Lab) -> None:
    lab.bed.block("h0", Block(ports=(FIRST,)))
    assert lab.dial() == "silence"
    assert lab.dial(port=SECOND).startswith("answered")
    lab.bed.unblock("h0")
    for host in lab.bed.hosts:
        lab.bed.block(host, Block(way="both", but=(FIRST,)))
    assert lab.dial().startswith("answered")
    assert lab.dial(port=SECOND) == "silence"


def test_one_peer(lab: Lab) -> None:
    lab.bed.block("h0", Block(peer="h1"))
    assert lab.dial("h1") == "silence"
    assert lab.dial("h2").startswith("answered")


def test_one_way(lab: Lab) -> None:
    lab.bed.block("h0", Block(peer="h1", new=True))
    assert lab.dial("h1", to="h0") == "silence"
    assert lab.dial("h0", to="h1").startswith("answered")


def test_an_mtu_black_hole_lets_the_small_pass(lab: Lab) -> None:
    lab.bed.block("h0", Block(larger=1000))
    assert lab.dial(size=500).startswith("answered")
    assert lab.dial(size=LARGE) == "silence once connected"


def test_the_firewall_is_opened_again(lab: Lab) -> None:
    lab.bed.block("h0", Block())
    lab.bed.unblock("h0")
    assert lab.dial().startswith("answered")
    lab.bed.unblock("h0")
