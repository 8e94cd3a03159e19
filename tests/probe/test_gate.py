"""The gate: let through, told to end, or alone because no agent has been heard of."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from allaboard.blackbox.reader import OpenBox
from allaboard.clock import FakeClock
from allaboard.probe import gate
from allaboard.probe.blackbox import Box
from allaboard.probe.layout import AGENT, AGENT_AT
from probed import RENDEZVOUS, Program, fake_torch


class Door:
    """A box with its agent's end, and a clock that moves with every poll."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}.box"
        self.box = Box(str(path))
        self.agent = OpenBox(path)
        self.clock = FakeClock()
        self.polls = 0
        self.at_poll = {10: lambda: None}

    def sleep(self, seconds: float) -> None:
        self.polls += 1
        self.at_poll.get(self.polls, lambda: None)()
        self.clock.advance(seconds)

    def wait(self, round_: int = 1) -> float:
        """Seconds at the door."""
        before = self.clock.now
        gate.wait(self.box, round_, self.clock.monotonic, self.sleep)
        return self.clock.now - before


def test_it_goes_on_when_it_is_let_through(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.at_poll[10] = lambda: door.agent.write_heartbeat(door.clock.now, 1)
    assert door.wait() == pytest.approx(10 * gate.POLL_INTERVAL_S)
    assert door.wait(1) == 0.0, "the same round once more"


def test_a_later_round_waits_again(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.agent.write_heartbeat(door.clock.now, 1)
    door.at_poll[10] = lambda: door.agent.write_heartbeat(door.clock.now, 2)
    assert door.wait(2) == pytest.approx(10 * gate.POLL_INTERVAL_S)


def test_a_verdict_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    door = Door(tmp_path)

    def judge() -> None:
        door.agent.write_verdict("allaboard: rank 1 never came")
        door.agent.write_heartbeat(door.clock.now, 0, 1)

    door.at_poll[10] = judge
    with pytest.raises(SystemExit) as ended:
        door.wait()
    assert ended.value.code == gate.EXIT_ROLL_CALL == 3
    assert capsys.readouterr().err == "allaboard: rank 1 never came\n"


def test_a_verdict_ends_a_program_without_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door(tmp_path)
    door.agent.write_heartbeat(door.clock.now, 0, 1)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit):
        door.wait()


def test_it_waits_as_long_as_the_agent_is_there(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.at_poll = {
        n: lambda: door.agent.write_heartbeat(door.clock.now, 0) for n in range(1, 4000)
    }
    door.at_poll[4000] = lambda: door.agent.write_heartbeat(door.clock.now, 1)
    assert door.wait() > gate.SILENT_AGENT_S


def test_it_goes_on_alone_when_no_agent_is_heard_of(tmp_path: Path) -> None:
    door = Door(tmp_path)
    sure = gate.SILENT_LOOKS * gate.POLL_INTERVAL_S
    assert door.wait() == pytest.approx(gate.SILENT_AGENT_S + sure, abs=2 * gate.POLL_INTERVAL_S)
    door.agent.write_heartbeat(door.clock.now + 5, 0)  # heard of once more after it arrived
    assert door.wait() == pytest.approx(
        gate.SILENT_AGENT_S + 5 + sure, abs=2 * gate.POLL_INTERVAL_S
    )


HELD = """
import sys, torch.distributed as dist
sys.stderr.write("arriving\\n")
try:
    print(dist.init_process_group("gloo"))
except SystemExit as end:
    import _allaboard_probe.member as m
    print("ended", end.code, m.here.depth)
    raise
"""


def test_a_member_is_held_and_let_through(any_program: Program) -> None:
    fake_torch(any_program.folder, "return 'in'")
    any_program.environment = dict(RENDEZVOUS, ALLABOARD_GATE="all")
    process = any_program.start(HELD)
    box = until_arrived(any_program, process.pid)
    assert process.poll() is None
    box.write_heartbeat(sys.float_info.max, 1)
    out, err = process.communicate()
    assert (out, process.returncode) == ("in\n", 0), err
    seen = box.read_snapshot()
    assert seen.declared is not None
    assert (seen.declared.rank, seen.declared.world_size) == (1, 2)
    assert seen.declared.place == "tcp://127.0.0.1:29999"
    assert seen.declared.local
    assert seen.notes["torch"] == "2.99"


def test_a_verdict_reaches_the_member(any_program: Program) -> None:
    fake_torch(any_program.folder)
    any_program.environment = dict(RENDEZVOUS, ALLABOARD_GATE="local")
    process = any_program.start(HELD)
    box = until_arrived(any_program, process.pid)
    box.write_verdict("allaboard: rank 0 never came")
    box.write_heartbeat(sys.float_info.max, 0, 1)
    out, err = process.communicate()
    assert (out, process.returncode) == ("ended 3 0\n", 3)
    assert err.endswith("allaboard: rank 0 never came\n")


ALARMED = """
import signal, sys, torch.distributed as dist
import _allaboard_probe.member as m
def late(number, frame):
    raise TimeoutError("init took too long")
signal.signal(signal.SIGUSR2, late)
sys.stderr.write("arriving\\n")
try:
    dist.init_process_group("gloo")
except TimeoutError as error:
    print(error, m.here.depth)
"""


def test_what_a_signal_handler_raises_at_the_door_is_the_program_s(any_program: Program) -> None:
    fake_torch(any_program.folder)
    any_program.environment = dict(RENDEZVOUS, ALLABOARD_GATE="all")
    process = any_program.start(ALARMED)
    until_arrived(any_program, process.pid)
    process.send_signal(signal.SIGUSR2)
    out, err = process.communicate(timeout=9)
    assert (out, process.returncode) == ("init took too long 0\n", 0), err


def test_nobody_is_held_without_a_gate(program: Program) -> None:
    fake_torch(program.folder, "return 'in'")
    program.environment = dict(RENDEZVOUS)
    ended = program.run(HELD)
    assert (ended.out, ended.code) == ("in\n", 0)


def test_what_init_cannot_read_is_the_frameworks_to_judge(program: Program) -> None:
    fake_torch(program.folder, "return rest")
    program.environment = {"ALLABOARD_GATE": "all"}
    ended = program.run(
        "import torch.distributed as dist\n"
        "print(dist.init_process_group('gloo', rank='zero', world_size=[]))\n"
    )
    assert (ended.out, ended.code) == ("{'rank': 'zero', 'world_size': []}\n", 0), ended.err


def until_arrived(program: Program, pid: int) -> OpenBox:
    process = program.started[-1]
    assert process.stderr is not None
    assert process.stderr.readline() == "arriving\n"
    box = program.box(pid)
    while box.read_snapshot().phase < 4:
        assert process.poll() is None
    return box


def test_a_look_in_the_midst_of_the_agent_s_word_is_no_silence(tmp_path: Path) -> None:
    door = Door(tmp_path)
    late = int(gate.SILENT_AGENT_S / gate.POLL_INTERVAL_S) + 200
    for poll in range(0, late, 10):
        door.at_poll[poll] = lambda: door.agent.write_heartbeat(door.clock.now, 0)
    door.at_poll[late - 5] = lambda: AGENT.pack_into(door.agent.map, AGENT_AT, 0.0, 0, 0)
    door.at_poll[late - 4] = lambda: door.agent.write_heartbeat(door.clock.now, 0)
    door.at_poll[late] = lambda: door.agent.write_heartbeat(door.clock.now, 1)
    assert door.wait() == pytest.approx(late * gate.POLL_INTERVAL_S)
