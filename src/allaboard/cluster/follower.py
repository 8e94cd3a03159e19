"""A host that follows the leader: connects until it is admitted, sends its events, and executes commands."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from allaboard.cluster.call_history import CallHistory
from allaboard.cluster.connections.forgery_report import forgery_knock, forgery_note
from allaboard.cluster.connections.host_reports import HostReports
from allaboard.cluster.connections.silence_detector import SilenceDetector
from allaboard.cluster.link_limits import LinkLimits
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import (
    ConnectResult,
    connect_and_greet,
    count_store_clients,
)
from allaboard.cluster.transport.leader_lease import LeaseStoreError
from allaboard.cluster.transport.link_trial import try_links
from allaboard.cluster.transport.outgoing_socket import reset_stream
from allaboard.cluster.transport.sealed_records import ForgedMessageError
from allaboard.cluster.transport.sealed_stream import ByteWriter
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S, silence_seconds
from allaboard.cluster.transport.tcp_keepalive import set_keepalive as set_lively
from allaboard.cluster.transport.wire import (
    AgentContact,
    LeaderCommands,
    LeaderLeaves,
    LeaderRoster,
    LinkTestRequest,
    Message,
    PortReleased,
    PortReleaseRequest,
    RollCallEnded,
)
from allaboard.facts import Address, Answer
from allaboard.protocol.commands import Command, OpenGate, OpenHeldGates, ShowNote
from allaboard.protocol.events import Event, StrangerConnected

RETRY_INTERVAL_S, IDLE_INTERVALS = 0.05, 4
"""Seconds between two attempts to connect while a member waits at the gate here; `IDLE_INTERVALS` times as
long otherwise."""
MAX_EAGER_TRIES = 100
"""Attempts with the same answer after which the longer interval is used in any case."""
HOST_LOST_ERRNOS = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
"""Errors with which a stream ends whose other host was lost silently."""


class StreamEnd(NamedTuple):
    """The end, or the silence, of the connection to a leader that had not said goodbye."""

    roster: LeaderRoster
    """The agents of the job, as the leader has named them; the leader is the first one."""
    met_host: str
    """Numeric address over which this host was connected to it."""
    ended_at: float
    """When the connection ended, or the silence was noticed (s, CLOCK_MONOTONIC)."""
    how: str
    """How it ended, in words for people."""
    is_silent: bool = False
    """True if it did not end, but nothing has come over it for long."""

    @property
    def leader(self) -> AgentContact:
        """The agent that led."""
        return self.roster.agents[0]


class EarlyWord:
    """What the leader has said of the end of the roll call, until it is believed."""

    def __init__(self) -> None:
        self.is_roll_call_over = False
        self.roster: LeaderRoster | None = None


class Follower:
    """The connection of this host to the leader.

    ``find_address`` returns the leader's address, "" while it is not known. ``release_port`` is called when
    the framework's port is to be closed. ``is_patient``: the leader may be out of reach for a while once the
    job trains. ``is_user_given``: the user named the address. ``on_leader_lost`` is called if the
    connection ends after the roll call and the leader has not said goodbye; ``on_roster`` once the roll call
    is over, and whenever another agent leads. ``link_limits`` bound which
    links are tested for a leader that has proved nothing.
    """

    def __init__(
        self,
        find_address: Callable[[], Awaitable[str]],
        identity: Callable[[], Identity],
        release_port: Callable[[], None],
        wake: Callable[[], None],
        *,
        is_patient: bool = True,
        is_user_given: bool = False,
        on_leader_lost: Callable[[StreamEnd], None] = lambda end: None,
        on_roster: Callable[[LeaderRoster], None] = lambda roster: None,
        link_limits: LinkLimits | None = None,
    ) -> None:
        self._link_limits = link_limits
        self._early_word = EarlyWord()
        self._find_address = find_address
        self._identity = identity
        self._release_port = release_port
        self._wake = wake
        self._writer: ByteWriter | None = None
        self._met_host = ""
        """Numeric address of the leader that was met last."""
        self._reports = HostReports()
        self._forged_addresses: set[str] = set()
        self._link_probe: asyncio.Task[None] | None = None
        self._silence = SilenceDetector()
        self.events: list[Event] = []
        """Events about our own attempts to connect, until they are taken."""
        self._calls = CallHistory(is_user_given, self.events, wake)
        self.commands: list[Command] = []
        """Commands of the leader, until they are taken."""
        self.is_done = False
        self._is_patient = is_patient
        self._is_gate_open = False
        self._on_leader_lost, self._on_roster = on_leader_lost, on_roster
        self.leader: AgentContact | None = None
        """Where the leader can be reached during the training; None before the roll call is over, and once it
        has said goodbye or we have."""
        self._roster: LeaderRoster | None = None
        """The newest roster of any leader; None before the roll call is over."""

    @property
    def leader_address(self) -> str:
        """Address of the leader; "" before the first attempt."""
        return self._calls.address

    @property
    def may_be_unheard(self) -> bool:
        """True if the leader may still open its port, or has not got all events yet."""
        if self._writer is not None:
            return self._reports.has_unsent
        call = self._calls.last
        return call is None or call.answer in (Answer.REFUSED, Answer.UNPOSTED)

    @property
    def is_linked(self) -> bool:
        """True if the leader is connected, hears us and decides."""
        return self._writer is not None and not self._silence.silent_since

    async def run_calls(self) -> None:
        """Connect until the leader admits us, then execute its commands until the stream ends; then again."""
        while not self.is_done:
            try:
                address = await self._find_address()
                if address:
                    await self._try_to_join(address, await connect_and_greet(address))
                else:
                    self._calls.record("", Answer.UNPOSTED, "rank 0 has not posted its address")
            except LeaseStoreError as error:
                self._calls.record(error.place, Answer.FAILED, str(error), kind=error.kind)
            # The rendezvous file or store has failed, which it may do for a moment: it is tried again.
            except (OSError, TimeoutError) as error:
                self._calls.record(
                    "", Answer.FAILED, getattr(error, "strerror", None) or str(error)
                )
            await self._pause()

    async def _pause(self) -> None:
        for _ in range(IDLE_INTERVALS):
            await asyncio.sleep(RETRY_INTERVAL_S)
            # A member that waits at the gate loses time with every pause, but not for ever: a leader that is
            # down for long must not be flooded.
            eager = self._calls.unchanged_count < MAX_EAGER_TRIES
            if eager and self._reports.has_waiting_member:
                return

    async def _try_to_join(self, address: str, result: ConnectResult) -> None:
        if result.answer is not Answer.ABOARD or result.reader is None or result.writer is None:
            store_clients = (
                await count_store_clients(address) if result.answer is Answer.STORE else -1
            )
            self._calls.record(
                address,
                result.answer,
                result.detail,
                numeric_address=result.numeric_address,
                store_clients=store_clients,
            )
            return
        try:
            admission = await shake_hands(
                result, self._identity(), first_frames=self._reports.encode_past_events
            )
        except HandshakeRefusedError as error:
            self._calls.record(
                address,
                Answer.OTHER,
                str(error),
                numeric_address=result.numeric_address,
                kind=error.kind,
                is_proven=error.is_proven,
            )
            result.writer.close()
            return
        except OSError as error:
            self._calls.record(
                address, Answer.CLOSED, str(error), numeric_address=result.numeric_address
            )
            result.writer.close()
            return
        self._writer = admission.writer
        self._met_host = Address.from_endpoint(result.numeric_address).host
        self._silence = SilenceDetector()  # of the stream before this one
        self._set_keepalive(on=True)
        self._reports.begin_stream()
        self._early_word = EarlyWord()
        self._calls.record(
            address, Answer.ABOARD, numeric_address=result.numeric_address, has_shaken_hands=True
        )
        try:
            while True:
                self._handle_message(
                    await wire.read_message(admission.reader, wire.MAX_MEMBER_FRAME_BYTES)
                )
                self._wake()
        except (
            OSError,
            asyncio.IncompleteReadError,
            wire.GarbledMessageError,
            ForgedMessageError,
        ) as error:
            self._writer = None
            result.writer.close()
            self._on_stream_end(address, error)

    def _on_stream_end(self, address: str, error: Exception) -> None:
        """Record the end of the stream to this leader, and report it."""
        if self._is_gate_open and isinstance(error, OSError) and error.errno in HOST_LOST_ERRNOS:
            text = f"the leader does not answer any more: {error.strerror}"
            self.commands.append(ShowNote(text=text))
        if isinstance(error, ForgedMessageError):
            self._note_forgery(address)
        self._calls.record(
            address, Answer.CLOSED, str(error) or "the stream ended", has_shaken_hands=True
        )
        self._report_loss(error)

    def _report_loss(self, error: Exception) -> None:
        """Report that the connection has ended, unless either side has ended it on purpose."""
        # A goodbye has set `leader` to None. Forgotten before the report, so that one loss is reported once.
        leader, self.leader = self.leader, None
        if leader is None or self._roster is None or self.is_done:
            return
        reason = getattr(error, "strerror", None)
        how = f"it ended without signing off ({reason.lower() if reason else 'closed by the other end'})"
        if isinstance(error, ForgedMessageError):
            how = f"a message was not obeyed, since {error}"
        self._on_leader_lost(StreamEnd(self._roster, self._met_host, time.monotonic(), how))

    def _note_forgery(self, address: str) -> None:
        """Report that something writes on the connection to the leader; to the leader, once it is reached
        again."""
        if address not in self._forged_addresses:
            self._forged_addresses.add(address)
            self.commands.append(ShowNote(text=forgery_note("the leader", address)))
        identity = self._identity()
        knock = forgery_knock(address, identity.host, identity.rank, time.monotonic())
        self._reports.add_forgery(address, StrangerConnected(knock=knock))

    def send_events(self, now: float, events: list[Event]) -> None:
        """Send what is new on this host to the leader, and remember the newest state for a reconnect."""
        self._reports.add_events(events)
        self._believe_early_word()
        writer = self._writer
        # They are remembered above and go with the next Hello.
        if writer is None or writer.is_closing():
            return
        if frame := self._reports.encode_news(now, events):
            writer.write(frame)

    def check_silence(self, now: float) -> None:
        """Report a leader that has not answered for a while although the stream to it is open."""
        sock = self._writer.get_extra_info("socket") if self._writer is not None else None
        lost, recovered = self._silence.find_changes(
            now, {0: lambda: silence_seconds(sock)} if sock is not None else {}
        )
        if lost:
            address = f" ({self.leader_address})" if self.leader_address else ""
            text = f"nothing has come from the leader for {HOST_AWAY_AFTER_S:.0f} s{address}"
            self.commands.append(ShowNote(text=text))
            self._calls.record(
                self.leader_address,
                Answer.SILENT,
                f"nothing has come from it for {HOST_AWAY_AFTER_S:.0f} s",
            )
            if self.leader is not None and self._roster is not None:
                how = f"nothing has come over it for {HOST_AWAY_AFTER_S:.0f} s"
                end = StreamEnd(self._roster, self._met_host, now, how, is_silent=True)
                self._on_leader_lost(end)
        elif recovered:
            self.commands.append(ShowNote(text="the leader answers again"))
            self._calls.record(self.leader_address, Answer.ABOARD, has_shaken_hands=True)

    def _handle_message(self, message: Message) -> None:
        match message:
            case LeaderCommands():
                self.commands += message.commands
                if any(map(self._opens_gate_here, message.commands)):
                    self._on_gate_open()
                    self._believe_early_word()
            case RollCallEnded():
                self._early_word.is_roll_call_over = True
                self._believe_early_word()
            case LeaderRoster():
                self._check_term(message)
                self._early_word.roster = message
                self._believe_early_word()
            case LeaderLeaves():
                self.leader = None
            case LinkTestRequest():
                # Kept in an attribute, since the loop holds tasks only weakly.
                self._link_probe = asyncio.ensure_future(self._probe_links(message.targets))
            case PortReleaseRequest():
                self._release_port()
                if self._writer is not None:
                    self._writer.write(wire.encode_frame(PortReleased()))

    def _opens_gate_here(self, command: Command) -> bool:
        return isinstance(command, OpenHeldGates) or (
            isinstance(command, OpenGate) and self._reports.is_at_gate(command.pid, command.round)
        )

    def _check_term(self, roster: LeaderRoster) -> None:
        """Raise GarbledMessageError for an agent that leads no longer."""
        # An agent that was cut off may still take itself for the leader while another one leads already.
        if self._roster is not None and roster.term < self._roster.term:
            why = (
                f"its orders are those of leader {roster.term}; leader {self._roster.term} is known"
            )
            raise wire.GarbledMessageError(why)

    def _believe_early_word(self) -> None:
        """Take it that the roll call is over, and who leads, once that can be so.

        Whoever answers at the rendezvous address before the leader comes can say both, too. A leader that
        has proved nothing is believed when a member of this host is let in, or was not held at all; what it
        has said is forgotten when it hangs up before.
        """
        has_proved = self._link_limits is None
        if not (has_proved or self._is_gate_open or self._reports.has_started_member):
            return
        word, self._early_word = self._early_word, EarlyWord()
        if word.is_roll_call_over:
            self._on_gate_open()
        if word.roster is not None:
            self._roster, self.leader = word.roster, word.roster.agents[0]
            self._on_roster(word.roster)

    def _on_gate_open(self) -> None:
        """Note that the roll call is over: from now on a patient follower outlasts a pause of the network."""
        self._is_gate_open = True
        self._set_keepalive(on=not self._is_patient)

    def _set_keepalive(self, on: bool) -> None:
        """Let the kernel find out soon (``on``) or late whether the leader's host was lost."""
        sock = self._writer.get_extra_info("socket") if self._writer is not None else None
        if sock is not None:
            set_lively(sock, on)

    async def _probe_links(self, targets: tuple[tuple[str, str], ...]) -> None:
        if self._link_limits is not None:
            targets = () if self._is_gate_open else self._link_limits.admit(targets)
        results = await try_links(self._identity(), targets)
        if self._writer is not None:
            self._writer.write(wire.encode_frame(results))

    def hang_up(self) -> None:
        """Disconnect from this leader; `run_calls` connects to the next one."""
        self.leader = None
        self._close_stream()

    def close(self) -> None:
        """Disconnect for good. A stream that is closed in order loses nothing that was written."""
        self.is_done = True
        self._close_stream()

    def _close_stream(self) -> None:
        if self._writer is None:
            return
        if not self._silence.silent_since:
            self._writer.close()
            return
        # An orderly end would wait until a host that does not answer has acknowledged what is unsent.
        reset_stream(self._writer)
