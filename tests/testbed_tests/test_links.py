"""Names, cables, bandwidth, delay and loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedded import Lab, need

pytestmark = pytest.mark.alone  # what is measured are seconds


def seconds(answer: str) -> float:
    assert answer.startswith("answered"), answer
    return float(answer.split()[1])


def test_a_name_means_another_host_or_none(lab: Lab) -> None:
    lab.bed.name("h1", "h0", "10.77.0.9")
    assert lab.dial() == "silence"
    lab.bed.name("h1", "h0", "127.0.1.1")
    assert seconds(lab.dial()) < 1  # its own server answers
    lab.bed.name("h1", "h0", None)
    assert lab.dial() == "no such name"
    assert seconds(lab.dial("h2")) < 1
    lab.bed.heal()
    assert seconds(lab.dial()) < 1


def test_a_cable_is_drawn_and_put_in_again(lab: Lab) -> None:
    lab.bed.unplug("h0")
    assert lab.dial() == "silence"
    assert lab.dial(wait=5) == "unreachable"  # nobody answers to its address: after some 3 s
    lab.bed.plug("h0")
    assert seconds(lab.dial()) < 1


def test_a_narrow_cable(lab: Lab) -> None:
    lab.bed.narrow("h0", 8)
    took = seconds(lab.dial(size=500_000, wait=10))
    assert 0.4 < took < 3  # 4 megabits there and, at the same time, back
    lab.bed.heal()
    assert seconds(lab.dial(size=500_000, wait=10)) < 0.4


def test_a_long_cable(lab: Lab) -> None:
    need("wire")
    lab.bed.wire("h0", delay=0.05)
    took = min(seconds(lab.dial(wait=5)) for _ in range(3))
    assert 0.2 < took < 0.5  # a round trip to connect, one to send and hear
    lab.bed.heal()
    assert min(seconds(lab.dial()) for _ in range(3)) < 0.05


def sent_again(lab: Lab) -> int:
    """Segments that TCP of h0 and h1 has sent again: RetransSegs of /proc/net/snmp."""
    total = 0
    for host in ("h0", "h1"):
        text = Path(f"/proc/{lab.bed.first(host)}/net/snmp").read_text()
        names, values = (row.split() for row in text.splitlines() if row.startswith("Tcp:"))
        total += int(values[names.index("RetransSegs")])
    return total


def test_a_bad_cable(lab: Lab) -> None:
    need("wire")
    lab.bed.wire("h0", loss=1.0)
    assert lab.dial() == "silence"
    lab.bed.wire("h0", loss=0.1)
    # What is lost is sent again; three lost questions for an address make a host unreachable.
    before = sent_again(lab)
    met = [lab.dial(size=200_000, wait=25) for _ in range(3)]
    assert any(answer.startswith("answered") for answer in met), met
    assert sent_again(lab) > before


@pytest.mark.parametrize("ahead", [300, -300])
def test_a_clock_is_wrong_on_one_host(lab: Lab, ahead: int) -> None:
    import os
    import sys
    import time

    from testbed.clock_skew import skewed

    need("clock")
    script = "import time; print(time.time(), time.monotonic())"
    plain = lab.bed.run("h1", sys.executable, "-I", "-S", "-c", script).split()
    process = lab.bed.start(
        "h1", [sys.executable, "-I", "-S", "-c", script], skewed(os.environ, ahead)
    )
    assert process.wait(10) == 0
    wall, monotonic = map(float, process.text().split())
    assert abs(wall - time.time() - ahead) < 10
    assert 0 <= monotonic - float(plain[1]) < 10
