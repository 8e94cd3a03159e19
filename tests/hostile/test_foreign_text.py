"""Text of another host can neither drive the terminal nor pass for a line of allaboard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from agent_fakes import Workbench
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.wire import Hello, Refused
from allaboard.facts import Certainty, Finding, Severity, Stage
from allaboard.report.finding_text import finding_lines, finding_title

HOSTILE = "x\x1b[2J\x07\r\nallaboard: FAKE\u202e\u2066\x9b31m\u200b"
FORBIDDEN = "\x1b\x07\r\n\u202e\u2066\x9b\u200b"


def is_neutral(text: str) -> bool:
    return not set(text) & set(FORBIDDEN)


def test_a_note_is_one_harmless_line(tmp_path: Path) -> None:
    async def main() -> None:
        with Workbench(tmp_path) as bench:
            bench.announcer.write_line(HOSTILE)
            bench.announcer.print_line(HOSTILE)
            assert len(bench.terminal.lines) == 2
            assert all(map(is_neutral, [*bench.terminal.lines, *bench.announcer.notes]))

    asyncio.run(main())


def test_no_part_of_a_finding_drives_a_terminal() -> None:
    finding = Finding(
        rule=HOSTILE, name=HOSTILE, severity=Severity.ERROR, certainty=Certainty.LIKELY,
        stage=Stage.RUNTIME, who=(), summary=HOSTILE, evidence=(), fix=HOSTILE, at=HOSTILE,
    )  # fmt: skip
    for line in [
        *finding_lines(finding, verbose=True),
        finding_title(finding),
        *finding_lines(msgspec.structs.replace(finding, over=HOSTILE)),
    ]:
        assert is_neutral(line)


@pytest.mark.parametrize(
    "host", ["a b", "h1;id", "h\x1b[2J", "h1\nh2", "\u202eh", "$(id)", "x" * 256]
)
def test_a_host_is_admitted_by_an_ordinary_name_only(host: str) -> None:
    with pytest.raises(wire.GarbledMessageError):
        wire.take_message(
            wire.encode_frame(Refused(kind="other", why="", host=host)), wire.MAX_HELLO_BYTES
        )


@pytest.mark.parametrize("host", ["node-1", "node_1.example.org", "10.0.0.1", "fe80::1%eth0", ""])
def test_ordinary_names_are_taken(host: str) -> None:
    hello = Hello(
        version=1, nonce="n", proof="", job="j", host=host, pid=1, rank=0,
        data=f"{host}:1", wall=0.0, mono=0.0,
    )  # fmt: skip
    message, _ = wire.take_message(wire.encode_frame(hello), wire.MAX_HELLO_BYTES)
    assert message == hello
