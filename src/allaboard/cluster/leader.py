"""The leader: admits the agents of other hosts, collects their events, and sends them the decisions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from allaboard.cluster.connections.command_routes import route_to_hosts
from allaboard.cluster.connections.foreign_events import translate_event
from allaboard.cluster.connections.forgery_report import forgery_knock, forgery_note
from allaboard.cluster.connections.gate_release import GateRelease
from allaboard.cluster.follower_presence import FollowerPresence, connected_event
from allaboard.cluster.framework_clients import FrameworkClients
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import (
    AgentContact,
    HostEvents,
    LeaderCommands,
    LeaderLeaves,
    LeaderRoster,
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
    DropAgent,
    EndJob,
    OpenGate,
    OpenHeldGates,
    ReportInterruption,
    ShowNote,
)
from allaboard.protocol.events import AgentDisconnected, Event, LinksProbed, StrangerConnected

BATCHING_FROM_AGENTS, BATCHING_DELAY_PER_AGENT_S, MAX_BATCHING_DELAY_S = 128, 2e-6, 0.02
"""With at least this many agents connected their events are batched before the job state looks at them: per
agent so many seconds, but no more than `MAX_BATCHING_DELAY_S`. Judging each event alone would take too
long."""
MAX_NOTES_AT_ONCE = 4
"""Dropped members that are reported at once: a hostile one may come again and again."""
MAX_REASON_CHARS = 200
"""Characters of the reason why a member is dropped; it may quote what the member sent."""


class Leader:
    """The meeting of all agents of the job.

    ``framework``: clients of this framework belong to the job. ``is_patient``: a follower may be out of reach
    for a while once its gate is open. ``ports_elsewhere``: followers listen on the framework's ports, too,
    and must close them first. ``contact`` returns where this agent can be reached once the roll call is
    over; None if the agents part then. ``term``: the number of this leader in the job; one that is not the
    first leads a job whose roll call is over. ``ticket``: the secret of the agents that took part in the roll
    call, if the user gave none. ``is_mixed``: some members run without allaboard although there
    is a secret, or TLS. ``job_addresses``: see `FrameworkClients`.
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
        contact: Callable[[], AgentContact] | None = None,
        term: int = 1,
        ticket: str = "",
        is_mixed: bool = False,
        job_addresses: Callable[[], frozenset[str] | None] = frozenset,
    ) -> None:
        self.notes: list[str] = []
        """Sentences about members that were dropped, until they are taken."""
        self.listener = Listener(
            job,
            secret,
            self._on_member,
            self._on_message,
            self._on_stranger,
            tls,
            round_,
            on_misuse=lambda member, reason: self.expel(member.number, reason),
            on_forgery=self._on_forgery,
            on_trouble=lambda text: self.notes.append(text),
        )
        self.framework = framework
        self._framework_clients = FrameworkClients(is_mixed or not (secret or tls), job_addresses)
        self.events: list[Event] = []
        """Events of other hosts, until they are taken."""
        self._wake = wake
        self._wake_timer: asyncio.TimerHandle | None = None
        self.followers = FollowerPresence(lambda: contact().rank if contact is not None else 0)
        self._members = self.followers.members
        self._gates = GateRelease(is_roll_call_over=term > 1)
        self.is_gate_open = term > 1
        """True once the roll call is over."""
        self._is_patient = is_patient
        self._verdict_commands: list[Command] = []
        self._outgoing = b""
        self._has_ended = False
        self._ports_elsewhere = ports_elsewhere
        self._contact = contact
        self._term, self._ticket = term, ticket
        self._is_roster_due = False
        """True if agents have come or gone since the roster was sent."""
        self._forged_numbers: set[int] = set()

    def set_framework(self, framework: str) -> None:
        """Set the framework once the first member has named it."""
        self.framework = framework

    @property
    def connected_count(self) -> int:
        """Number of other agents that are connected now."""
        return len(self._members)

    @property
    def met_count(self) -> int:
        """Number of other agents that have ever connected."""
        return self.followers.met_count

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts whose agents were connected and are not any more: see `FollowerPresence`."""
        return self.followers.lost_hosts

    @property
    def isolation(self) -> str:
        """How few agents can be reached from here, for people; "" if it is most of them."""
        return self.followers.isolation

    @property
    def silent_contacts(self) -> list[AgentContact]:
        """Where the agents may be reached that do not answer."""
        return self.followers.silent_contacts

    def check_silences(self, now: float) -> list[Command]:
        """Detect followers that are silent although their stream is open, and those that answer again.

        Before the gate opens a silent stream is cut, so that the follower can reconnect; afterwards it stays,
        since the port is the framework's by then and nobody could reconnect.
        """
        if not self.followers.silence.is_due(now):
            return []
        if not self._gates.has_begun:
            self.followers.cut_silent_streams(now)
            return []
        events, notes = self.followers.find_silences(now)
        self.events += events
        return notes

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
            case DropAgent():
                self.expel(command.agent, command.reason)
                return []
            case AnnounceFinding() | ShowNote() | EndJob() | ReportInterruption():
                self._has_ended = self._has_ended or isinstance(command, EndJob)
                # Replayed to agents that connect after the end; notes would only confuse there.
                if not isinstance(command, ShowNote):
                    self._verdict_commands.append(command)
                # Encoded once for all hosts, and sent by `send_due` together with the gates in one write per
                # host.
                self._outgoing += wire.encode_frame(LeaderCommands(commands=(command,)))
                return [command]
        route = route_to_hosts(command, self.followers.host_of)
        for agent, message in route.messages:
            self._send(agent, message)
        return list(route.local_commands)

    def expel(self, number: int, reason: str) -> None:
        """Disconnect a member for good, since what it sends cannot be used, and note why."""
        member = self._members.get(number)
        host = self.followers.host_of(number)
        address = f" ({member.peer_address})" if member is not None else ""
        self.notes.append(
            f"{host}{address} is dropped from the roll call: {reason[:MAX_REASON_CHARS]}"
        )
        if member is not None:
            self.listener.ban_session(member.hello.session)
            member.stream.abort()

    def _on_forgery(self, member: MemberConnection) -> None:
        """Report a connection on which something else has written. Its agent may connect again: it has done
        nothing wrong."""
        host, address = member.hello.host, member.peer_address
        if member.number not in self._forged_numbers:
            self._forged_numbers.add(member.number)
            self.notes.append(forgery_note(host, address))
        knock = forgery_knock(address, host, member.hello.rank, time.monotonic())
        self.events.append(StrangerConnected(knock=knock))

    def take_notes(self) -> list[Command]:
        """Return what is to be shown here about members that were dropped, since the last call."""
        notes, self.notes = self.notes[:MAX_NOTES_AT_ONCE], []
        return [ShowNote(text=text) for text in notes]

    def open_all_gates(self, reason: str) -> None:
        """Let the members of all hosts go on: the state of the job cannot decide any more."""
        self.listener.close_port()
        self.send_to_all(OpenHeldGates(reason=reason))

    def send_due(self, now: float) -> list[Command]:
        """Send what is for all hosts, and open the gates once every port that a framework will bind is free.

        To be called after `route_command`; return the commands for this host.
        """
        shared_frames, self._outgoing = self._outgoing, b""
        local_commands: list[Command] = []
        gate_frames: dict[int, bytes] = {}
        if self._gates.may_open(now):
            local_commands, gate_frames = self._gates.take_gates()
            if not self.is_gate_open:
                self.is_gate_open = self._is_roster_due = True
                self._end_keepalive(gate_frames)
                # Whoever comes from now on has been here before, or is a stranger.
                self.listener.secret = self.listener.secret or self._ticket.encode()
        if self._is_roster_due and self._contact is not None:
            self._is_roster_due = False
            roster = LeaderRoster(
                term=self._term,
                agents=self.followers.roster_agents(self._contact()),
                ticket=self._ticket,
            )
            shared_frames += wire.encode_frame(roster)
        for number, member in list(self._members.items()) if shared_frames or gate_frames else ():
            frames = shared_frames + gate_frames.get(number, b"") if gate_frames else shared_frames
            if frames:
                member.send_frame(frames)
        # Only now: setting options must not delay the frames that all wait for.
        for number in gate_frames:
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
        """Say goodbye to all hosts, and close the port and every stream."""
        for member in list(self._members.values()):
            member.send_message(LeaderLeaves())
        self.step_down()

    def step_down(self) -> None:
        """Close the port and every stream without signing off: those that follow look for the next leader."""
        self.listener.close()
        if self._wake_timer is not None:
            self._wake_timer.cancel()

    def _open_gate(self, command: OpenGate) -> list[Command]:
        self._gates.add_gate(command)
        if not self._gates.has_begun:
            # First close the port, then send the frames: a framework's client that connects early is refused
            # and retries, while one that lands in our backlog would be reset.
            self.listener.close_port()
            asked_agents = tuple(self._members) if self._ports_elsewhere else ()
            self._gates.begin(time.monotonic(), asked_agents)
            for number in asked_agents:
                self._send(number, PortReleaseRequest())
        return []

    def _send(self, number: int, message: Message) -> None:
        member = self._members.get(number)
        if member is not None:
            member.send_message(message)

    def _on_member(self, member: MemberConnection) -> None:
        self.followers.add_member(member)
        if self.is_gate_open:
            self._is_roster_due = True
            member.send_message(RollCallEnded())
            if self._is_patient:
                member.stream.tolerate_silence()
        if self._has_ended:  # it connected late; the verdict is for all
            member.send_message(LeaderCommands(commands=tuple(self._verdict_commands)))
        self.events.append(connected_event(member))
        self._schedule_wake()

    def _on_message(self, member: MemberConnection, message: Message | None) -> None:
        match message:
            case None:
                if not self.followers.remove_member(member):
                    return  # it has reconnected over another stream already
                self._gates.note_released(member.number)
                self.events.append(
                    AgentDisconnected(agent=member.number, disconnected_at=time.monotonic())
                )
            case HostEvents():
                # Before the events are translated, so that they get the best known offset.
                member.update_offset(message.mono)
                now = time.monotonic()
                self.events += [
                    e for t in message.events if (e := translate_event(t, member, now)) is not None
                ]
            case LinkTestResults():
                results = LinksProbed(
                    agent=member.number, links=message.links, worked=message.worked
                )
                self.events.append(results)
            case PortReleased():
                self._gates.note_released(member.number)
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
        if self.is_gate_open:
            return  # it came to a port of our own: no framework's client is meant to
        event = self._framework_clients.stranger_event(self.framework, knock)
        self.events.append(event)
        if event.is_plain_client:
            self.listener.close_port()  # at once: a framework's client would wait for us in vain
        self._wake()
