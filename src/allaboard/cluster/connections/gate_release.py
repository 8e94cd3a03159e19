"""Keeps the gates shut until the followers have closed the framework's ports, which its members bind next."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.wire import LeaderCommands
from allaboard.protocol.commands import Command, OpenGate
from allaboard.protocol.process_keys import split_process_key

PORT_RELEASE_TIMEOUT_S = 1.0
"""Seconds that followers get to close their ports before the first gate opens."""


class GateRelease:
    """The gates that are to open. ``is_roll_call_over``: an earlier leader has opened the first ones."""

    def __init__(self, is_roll_call_over: bool) -> None:
        self._pending_gates: list[OpenGate] = []
        self._awaiting_release: set[int] | None = set() if is_roll_call_over else None
        """Agents that still close their ports; None before the first gate is to open. Empty once it has
        opened: gates of later inits open without asking for ports again."""
        self._deadline = 0.0

    @property
    def has_begun(self) -> bool:
        """True once the first gate is to open: no port is open for agents any more."""
        return self._awaiting_release is not None

    def add_gate(self, command: OpenGate) -> None:
        """Add a gate that is to open."""
        self._pending_gates.append(command)

    def begin(self, now: float, agents: Iterable[int]) -> None:
        """Wait until these agents have closed their ports."""
        self._awaiting_release = set(agents)
        self._deadline = now + PORT_RELEASE_TIMEOUT_S

    def note_released(self, agent: int) -> None:
        """Note that an agent has closed its ports, or has disconnected."""
        # None: nobody has been asked yet.
        if self._awaiting_release is not None:
            self._awaiting_release.discard(agent)

    def may_open(self, now: float) -> bool:
        """Return True if all ports are closed, or the deadline is over: a follower that does not answer must
        not hold the job up."""
        if self._awaiting_release is None:
            return False
        return not self._awaiting_release or now >= self._deadline

    def take_gates(self) -> tuple[list[Command], dict[int, bytes]]:
        """Return the gates to open on this host, and the frames for each other agent."""
        self._awaiting_release = set()
        gates, self._pending_gates = self._pending_gates, []
        return _split_gates(gates)


def _split_gates(commands: list[OpenGate]) -> tuple[list[Command], dict[int, bytes]]:
    """Return the gates to open on this host, and the frames for each other agent."""
    local_commands: list[Command] = []
    gate_frames: dict[int, bytes] = {}
    frames: dict[tuple[int, int], bytes] = {}
    """Encoded once per pid and round: many hosts have the same pids, above all in containers."""
    for command in commands:
        agent, pid = split_process_key(command.pid)
        if agent == 0:
            local_commands.append(command)
            continue
        frame = frames.get((pid, command.round))
        if frame is None:
            order = OpenGate(pid=pid, round=command.round, is_rpc_only=command.is_rpc_only)
            frame = frames[pid, command.round] = wire.encode_frame(
                LeaderCommands(commands=(order,))
            )
        gate_frames[agent] = gate_frames[agent] + frame if agent in gate_frames else frame
    return local_commands, gate_frames
