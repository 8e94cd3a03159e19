"""The leader: admits the agents of other hosts, collects their events, and sends them the decisions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from allaboard.blackbox.clock import shift_times
from allaboard.cluster.silence_detector import SilenceDetector
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.listener import Listener, MemberConnection
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S, HOST_LOST_AFTER_S
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import (
    HostEvents,
    LeaderCommands,
    LinkTestRequest,
    LinkTestResults,
    Message,
    PortReleased,
    PortReleaseRequest,
    RollCallEnded,
)
from allaboard.facts import Knock
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
    KillForReplacement,
    OpenGate,
    ProbeLinks,
    ReportInterruption,
    RestartWorker,
    SampleStacks,
    ShowNote,
    TraceCalls,
)
from allaboard.protocol.events import (
    AgentConnected,
    AgentDisconnected,
    AgentInterrupted,
    CallsTraced,
    Event,
    LinksProbed,
    LockWaitsSampled,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    ResourcesMeasured,
    SnapshotTaken,
    StackSampled,
    StrangerConnected,
    TrafficSampled,
)
from allaboard.protocol.process_keys import process_key, split_process_key

PORT_RELEASE_TIMEOUT_S = 1.0
"""Seconds that followers get to close their ports before the first gate opens."""
BATCHING_FROM_AGENTS, BATCHING_DELAY_PER_AGENT_S, MAX_BATCHING_DELAY_S = 128, 2e-6, 0.02
"""With at least this many agents connected their events are batched before the job state looks at them: per
agent so many seconds, but no more than `MAX_BATCHING_DELAY_S`. Judging each event alone would take too
long."""
WORKER_NUMBER_BITS = 12
"""Bits for the worker of an agent in the number by which the leader knows it; the agent's number is above
them."""
FRAMEWORK_CLIENT_KINDS = {"torch": "store", "tensorflow": "grpc", "jax": "grpc"}
"""Kind of stranger (see `protocol_sniffer`) that a framework's own client is."""


def stranger_event(framework: str, knock: Knock) -> StrangerConnected:
    """Return the event for a stranger; a client of this framework belongs to a member without allaboard."""
    return StrangerConnected(
        knock=knock, is_plain_client=knock.kind == FRAMEWORK_CLIENT_KINDS.get(framework)
    )


class Leader:
    """The meeting of all agents of the job.

    ``framework``: clients of this framework belong to the job. ``is_patient``: a follower may be out of reach
    for a while once its gate is open. ``ports_elsewhere``: followers listen on the framework's ports, too,
    and must close them first.
    """

    def __init__(
        self,
        job: str,
        secret: bytes,
        framework: str,
        wake: Callable[[], None],
        tls: TlsFiles | None = None,
        round_: int = 0,
        *,
        is_patient: bool = True,
        ports_elsewhere: bool = False,
    ) -> None:
        self.listener = Listener(
            job, secret, self._on_member, self._on_message, self._on_stranger, tls, round_
        )
        self.framework = framework
        self.events: list[Event] = []
        """Events of other hosts, until they are taken."""
        self._wake = wake
        self._wake_timer: asyncio.TimerHandle | None = None
        self._members: dict[int, MemberConnection] = {}
        self._pending_gates: list[OpenGate] = []
        self._awaiting_release: dict[int, MemberConnection] | None = None
        self._release_deadline = 0.0
        self._names: dict[int, tuple[int, str]] = {}
        self._silence = SilenceDetector()
        self._is_gate_open = False
        self._is_patient = is_patient
        self.met_count = 0
        """Number of other agents that have ever connected."""
        self._verdict_commands: list[Command] = []
        self._outgoing = b""
        self._has_ended = False
        self._ports_elsewhere = ports_elsewhere

    def set_framework(self, framework: str) -> None:
        """Set the framework once the first member has named it."""
        self.framework = framework

    @property
    def connected_count(self) -> int:
        """Number of other agents that are connected now."""
        return len(self._members)

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts whose agents were connected and are not any more, unless another agent came in their
        place."""
        # A silent host counts as lost, too, although its stream is still open.
        responsive = self._members.keys() - self._silence.silent_since.keys()
        present = {self._names[n] for n in responsive}
        lost = (name for n, name in self._names.items() if n not in responsive)
        return tuple(dict.fromkeys(host for rank, host in lost if (rank, host) not in present))

    def check_silences(self, now: float) -> list[Command]:
        """Detect followers that are silent although their stream is open, and those that answer again.

        Before the gate opens a silent stream is cut, so that the follower can reconnect; afterwards it stays,
        since the port is the framework's by then and nobody could reconnect.
        """
        if not self._silence.is_due(now):
            return []
        silences = {n: m.stream.seconds_silent for n, m in self._members.items()}
        is_roll_call = self._awaiting_release is None
        lost, recovered = self._silence.find_changes(
            now, silences, HOST_LOST_AFTER_S if is_roll_call else HOST_AWAY_AFTER_S
        )
        if is_roll_call:
            # The kernel would end such a stream, too, but it begins to count anew whenever something was sent
            # to that host meanwhile.
            for number in lost:
                self._members[number].stream.abort()
            return []
        for number in lost:
            self.events.append(
                AgentDisconnected(agent=number, disconnected_at=self._silence.silent_since[number])
            )
        self.events += [_connected_event(self._members[n]) for n in recovered]
        notes = [
            f"nothing has come from {self._names[n][1]} for {HOST_AWAY_AFTER_S:.0f} s" for n in lost
        ]
        notes += [f"{self._names[n][1]} answers again" for n in recovered]
        return [ShowNote(text=text) for text in notes]

    def send_to_all(self, command: Command) -> None:
        """Send a command to all other hosts at once."""
        # What was queued by `route_command` goes first: hosts must see the commands in the order of the
        # decisions.
        frame = self._outgoing + wire.encode_frame(LeaderCommands(commands=(command,)))
        self._outgoing = b""
        for member in list(self._members.values()):
            member.send_frame(frame)

    def route_command(self, command: Command) -> list[Command]:
        """Send a command to the host it is meant for; return what is to be done on this host."""
        match command:
            case OpenGate():
                return self._open_gate(command)
            case SampleStacks():
                return self._sample_stacks(command)
            case TraceCalls():
                return self._trace_calls(command)
            case ProbeLinks():
                if command.agent == 0:
                    return [command]
                self._send(command.agent, LinkTestRequest(targets=command.targets))
                return []
            case KillForReplacement() if split_process_key(command.pid)[0]:
                agent, pid = split_process_key(command.pid)
                order = msgspec.structs.replace(command, pid=pid)
                self._send(agent, LeaderCommands(commands=(order,)))
                return [ShowNote(text=f"{command.reason}; ending it so that it can be replaced")]
            case RestartWorker() if command.worker >> WORKER_NUMBER_BITS:
                return self._restart_elsewhere(command)
            case AnnounceFinding() | ShowNote() | EndJob() | ReportInterruption():
                self._has_ended = self._has_ended or isinstance(command, EndJob)
                # Replayed to agents that connect after the end; notes would only confuse there.
                if not isinstance(command, ShowNote):
                    self._verdict_commands.append(command)
                # Encoded once for all hosts, and sent by `send_due` together with the gates in one write per
                # host.
                self._outgoing += wire.encode_frame(LeaderCommands(commands=(command,)))
                return [command]
        return [command]

    def send_due(self, now: float) -> list[Command]:
        """Send what is for all hosts, and open the gates once every port that a framework will bind is free.

        To be called after `route_command`; return the commands for this host.
        """
        shared_frames, self._outgoing = self._outgoing, b""
        local_commands: list[Command] = []
        gate_frames: dict[int, bytes] = {}
        # The gates stay shut while followers still close their ports, but not beyond the deadline: a follower
        # that does not answer must not hold the job up.
        if self._awaiting_release is not None and not (
            self._awaiting_release and now < self._release_deadline
        ):
            # Empty from now on, not None: gates of later inits open without asking for ports again.
            self._awaiting_release = {}
            local_commands, gate_frames = _split_gates(self._pending_gates)
            self._pending_gates = []
            if not self._is_gate_open:
                self._is_gate_open = True
                self._end_keepalive(gate_frames)
        for number, member in list(self._members.items()) if shared_frames or gate_frames else ():
            frames = shared_frames + gate_frames.get(number, b"") if gate_frames else shared_frames
            if frames:
                member.send_frame(frames)
        for (
            number
        ) in gate_frames:  # only now: setting options must not delay the frames that all wait for
            if number in self._members and self._is_patient:
                self._members[number].stream.tolerate_silence()
        return local_commands

    def _end_keepalive(self, gate_frames: dict[int, bytes]) -> None:
        """Tell hosts whose members are not held at the gate (parameter servers, workers beside a chief) that
        it opened."""
        for number in self._members.keys() - gate_frames.keys():
            self._send(number, RollCallEnded())
            if self._is_patient:
                self._members[number].stream.tolerate_silence()

    def close(self) -> None:
        self.listener.close()
        if self._wake_timer is not None:
            self._wake_timer.cancel()

    def _open_gate(self, command: OpenGate) -> list[Command]:
        self._pending_gates.append(command)
        if self._awaiting_release is None:
            # First close the port, then send the frames: a framework's client that connects early is refused
            # and retries, while one that lands in our backlog would be reset.
            self.listener.close_port()
            self._awaiting_release = dict(self._members) if self._ports_elsewhere else {}
            self._release_deadline = time.monotonic() + PORT_RELEASE_TIMEOUT_S
            for number in self._awaiting_release:
                self._send(number, PortReleaseRequest())
        return []

    def _restart_elsewhere(self, command: RestartWorker) -> list[Command]:
        """Let the agent that started the worker restart it."""
        number = command.worker >> WORKER_NUMBER_BITS
        worker = command.worker - (number << WORKER_NUMBER_BITS)
        self._send(
            number, LeaderCommands(commands=(msgspec.structs.replace(command, worker=worker),))
        )
        host = self._names[number][1]
        return [ShowNote(text=f"{command.reason}: {host} restarts it")]

    def _sample_stacks(self, command: SampleStacks) -> list[Command]:
        pids_by_agent = _by_agent(command.pids)
        for agent, pids in pids_by_agent.items():
            if agent:
                self._send(agent, LeaderCommands(commands=(SampleStacks(pids=pids),)))
        return [SampleStacks(pids=pids_by_agent[0])] if 0 in pids_by_agent else []

    def _trace_calls(self, command: TraceCalls) -> list[Command]:
        local_commands: list[Command] = []
        for agent, pids in _by_agent(command.pids).items():
            order = msgspec.structs.replace(command, pids=pids)
            if agent:
                self._send(agent, LeaderCommands(commands=(order,)))
            else:
                local_commands.append(order)
        return local_commands

    def _send(self, number: int, message: Message) -> None:
        member = self._members.get(number)
        if member is not None:
            member.send_message(message)

    def _on_member(self, member: MemberConnection) -> None:
        self._members[member.number] = member
        # Kept when the agent goes: notes and `lost_hosts` still need its name.
        self._names[member.number] = member.hello.rank, member.hello.host
        self.met_count = len(self._names)
        if self._has_ended:  # it connected late; the verdict is for all
            member.send_message(LeaderCommands(commands=tuple(self._verdict_commands)))
        self.events.append(_connected_event(member))
        self._schedule_wake()

    def _on_message(self, member: MemberConnection, message: Message | None) -> None:
        match message:
            case None:
                if self._members.get(member.number) is not member:
                    return  # it has reconnected over another stream already
                self._members.pop(member.number, None)
                if self._awaiting_release is not None:
                    self._awaiting_release.pop(member.number, None)
                self.events.append(
                    AgentDisconnected(agent=member.number, disconnected_at=time.monotonic())
                )
            case HostEvents():
                # Before the events are translated, so that they get the best known offset.
                member.update_offset(message.mono)
                self.events += [
                    e for t in message.events if (e := _translate_event(t, member)) is not None
                ]
            case LinkTestResults():
                results = LinksProbed(
                    agent=member.number, links=message.links, worked=message.worked
                )
                self.events.append(results)
            case PortReleased():
                if self._awaiting_release is not None:
                    self._awaiting_release.pop(member.number, None)
        self._schedule_wake()

    def _schedule_wake(self) -> None:
        """Wake the loop to judge the new events, batched if many agents are connected."""
        if len(self._members) < BATCHING_FROM_AGENTS:
            self._wake()
        elif self._wake_timer is None:
            delay_s = min(MAX_BATCHING_DELAY_S, len(self._members) * BATCHING_DELAY_PER_AGENT_S)
            self._wake_timer = asyncio.get_running_loop().call_later(delay_s, self._on_wake_timer)

    def _on_wake_timer(self) -> None:
        self._wake_timer = None
        self._wake()

    def _on_stranger(self, knock: Knock) -> None:
        event = stranger_event(self.framework, knock)
        self.events.append(event)
        if event.is_plain_client:
            self.listener.close_port()  # at once: a framework's client would wait for us in vain
        self._wake()


def _connected_event(member: MemberConnection) -> AgentConnected:
    hello = member.hello
    return AgentConnected(
        agent=member.number,
        host=hello.host,
        probe_address=hello.data,
        rank=hello.rank,
        clock_ahead_s=member.wall_offset,
    )


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


def _by_agent(pid_keys: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Return the pids of each agent."""
    pids_by_agent: dict[int, tuple[int, ...]] = {}
    for agent, pid in map(split_process_key, pid_keys):
        pids_by_agent[agent] = (*pids_by_agent.get(agent, ()), pid)
    return pids_by_agent


def _translate_event(event: Event, member: MemberConnection) -> Event | None:
    """Return an event of another host with our clock and our name for the process.

    None for kinds of events that no other host may report: the set is closed.
    """
    clock_offset, number = member.clock_offset, member.number
    match event:
        case ProcessSampled():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                # Workers of all hosts share one number space: the agent's number is in the high bits.
                worker=(number << WORKER_NUMBER_BITS) + event.worker,
                sampled_at=event.sampled_at + clock_offset,
                box=shift_times(event.box, clock_offset) if event.box is not None else None,
                host=member.hello.host,
            )
        case ProcessExited():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                exited_at=event.exited_at + clock_offset,
            )
        case StackSampled() | TrafficSampled():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                sampled_at=event.sampled_at + clock_offset,
            )
        case ResourcesMeasured():
            return msgspec.structs.replace(
                event, measured_at=event.measured_at + clock_offset, host=member.hello.host
            )
        case AgentInterrupted():
            return AgentInterrupted(
                signal=event.signal,
                interrupted_at=event.interrupted_at + clock_offset,
                agent=number,
                host=member.hello.host,
            )
        case SnapshotTaken():
            return msgspec.structs.replace(event, taken_at=event.taken_at + clock_offset)
        case LockWaitsSampled():
            waits = [
                msgspec.structs.replace(w, waiter=process_key(number, w.waiter))
                for w in event.waits
            ]
            return LockWaitsSampled(waits=tuple(waits), agent=number)
        case MemberFactsReported():
            return MemberFactsReported(pid=process_key(number, event.pid), facts=event.facts)
        case CallsTraced():
            return msgspec.structs.replace(event, pid=process_key(number, event.pid))
        case StrangerConnected() if event.knock.kind == "elsewhere":
            knock = msgspec.structs.replace(
                event.knock, knocked_at=event.knock.knocked_at + clock_offset
            )
            return StrangerConnected(knock=knock)
    return None
