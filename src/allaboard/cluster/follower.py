"""A host that follows the leader: connects until it is admitted, sends its events, and executes commands."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable

from allaboard.cluster.silence_detector import SilenceDetector
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
    try_links,
)
from allaboard.cluster.transport.connect_probe import (
    ConnectResult,
    connect_and_greet,
    count_store_clients,
)
from allaboard.cluster.transport.leader_lease import LeaseStoreError
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S, silence_seconds
from allaboard.cluster.transport.tcp_keepalive import set_keepalive as set_lively
from allaboard.cluster.transport.wire import (
    HostEvents,
    LeaderCommands,
    LinkTestRequest,
    Message,
    PortReleased,
    PortReleaseRequest,
    RollCallEnded,
)
from allaboard.facts import Answer, Call, LockWait, Phase
from allaboard.protocol.commands import Command, OpenGate, ShowNote
from allaboard.protocol.events import (
    AgentInterrupted,
    CallsTraced,
    Event,
    LockWaitsSampled,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    RendezvousProbed,
    ResourcesMeasured,
    SnapshotTaken,
    StackSampled,
    StrangerConnected,
    TrafficSampled,
)

RETRY_INTERVAL_S, IDLE_INTERVALS = 0.05, 4
"""Seconds between two attempts to connect while a member waits at the gate here; `IDLE_INTERVALS` times as
long otherwise."""
MAX_EAGER_TRIES = 100
"""Attempts with the same answer after which the longer interval is used in any case."""
HOST_LOST_ERRNOS = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
"""Errors with which a stream ends whose other host was lost silently."""
REPEAT_INTERVAL_S = 1.0
"""Seconds after which an unchanged state of a member is sent again."""


class Follower:
    """The connection of this host to the leader.

    ``find_address`` returns the leader's address, "" while it is not known. ``release_port`` is called when
    the framework's port is to be closed. ``is_patient``: the leader may be out of reach for a while once the
    job trains. ``is_user_given``: the user named the address.
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
    ) -> None:
        self._find_address = find_address
        self._identity = identity
        self._release_port = release_port
        self._wake = wake
        self._writer: asyncio.StreamWriter | None = None
        self._last_call: Call | None = None
        self._last_markers: dict[int, tuple[object, float]] = {}
        self._fact_reports: dict[int, MemberFactsReported] = {}
        self._samples: dict[int, ProcessSampled] = {}
        self._exits: dict[int, ProcessExited] = {}
        self._strays: dict[str, StrangerConnected] = {}
        self._interruptions: list[AgentInterrupted] = []
        self._unsent: list[Event] = []
        self._sent_with_hello: dict[int, Event] = {}
        """Events that were sent with Hello, by id(); the reference keeps an id from being used again."""
        self._lock_waits: tuple[LockWait, ...] = ()
        """Waits for file locks, as last sent."""
        self._link_probe: asyncio.Task[None] | None = None
        self._silence = SilenceDetector()
        self.events: list[Event] = []
        """Events about our own attempts to connect, until they are taken."""
        self.commands: list[Command] = []
        """Commands of the leader, until they are taken."""
        self.is_done = False
        self._is_patient = is_patient
        self._is_gate_open = False
        self._is_user_given = is_user_given

    @property
    def _leader_address(self) -> str:
        """Address of the leader; "" before the first attempt."""
        return self._last_call.address if self._last_call is not None else ""

    @property
    def may_be_unheard(self) -> bool:
        """True if the leader may still open its port, or has not got all events yet."""
        if self._writer is not None:
            return bool(self._unsent)
        call = self._last_call
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
                    self._record_call("", Answer.UNPOSTED, "rank 0 has not posted its address")
            except LeaseStoreError as error:
                self._record_call(error.place, Answer.FAILED, str(error), kind=error.kind)
            except (OSError, TimeoutError) as error:
                self._record_call("", Answer.FAILED, getattr(error, "strerror", None) or str(error))
            await self._pause()

    async def _pause(self) -> None:
        for _ in range(IDLE_INTERVALS):
            await asyncio.sleep(RETRY_INTERVAL_S)
            # A member that waits at the gate loses time with every pause, but not for ever: a leader that is
            # down for long must not be flooded.
            eager = self._last_call is None or self._last_call.tries < MAX_EAGER_TRIES
            if eager and any(
                e.box and e.box.phase == Phase.ARRIVED for e in self._samples.values()
            ):
                return

    async def _try_to_join(self, address: str, result: ConnectResult) -> None:
        if result.answer is not Answer.ABOARD or result.reader is None or result.writer is None:
            store_clients = (
                await count_store_clients(address) if result.answer is Answer.STORE else -1
            )
            self._record_call(
                address, result.answer, result.detail, result.numeric_address, store_clients
            )
            return
        try:
            await shake_hands(result, self._identity(), first_frames=self._encode_past_events)
        except HandshakeRefusedError as error:
            self._record_call(
                address, Answer.OTHER, str(error), result.numeric_address, kind=error.kind
            )
            result.writer.close()
            return
        except OSError as error:
            self._record_call(address, Answer.CLOSED, str(error), result.numeric_address)
            result.writer.close()
            return
        self._writer = result.writer
        self._set_keepalive(on=True)
        # The new leader, or the same one after a broken stream, knows nothing of what was sent before:
        # everything counts as new again.
        self._last_markers.clear()
        self._lock_waits = ()
        # What happened between Hello and Welcome is sent with the next tick.
        self._unsent = [e for e in self._past_events() if id(e) not in self._sent_with_hello]
        self._sent_with_hello = {}
        self._record_call(address, Answer.ABOARD, "", result.numeric_address, has_shaken_hands=True)
        try:
            while True:
                self._handle_message(
                    await wire.read_message(result.reader, wire.MAX_MEMBER_FRAME_BYTES)
                )
                self._wake()
        except (OSError, asyncio.IncompleteReadError, wire.GarbledMessageError) as error:
            self._writer = None
            result.writer.close()
            if (
                self._is_gate_open
                and isinstance(error, OSError)
                and error.errno in HOST_LOST_ERRNOS
            ):
                text = f"the leader does not answer any more: {error.strerror}"
                self.commands.append(ShowNote(text=text))
            self._record_call(
                address, Answer.CLOSED, str(error) or "the stream ended", has_shaken_hands=True
            )

    def _past_events(self) -> list[Event]:
        """Return what happened before there was a connection: the newest event of each kind and process."""
        happened: list[Event] = [*self._samples.values(), *self._fact_reports.values()]
        return [*happened, *self._interruptions, *self._exits.values(), *self._strays.values()]

    def _encode_past_events(self) -> bytes:
        """Return all that is known now as frames to send with Hello: saves a round trip while many hosts
        wait."""
        self._sent_with_hello = {id(e): e for e in self._past_events()}
        if not self._sent_with_hello:
            return b""
        return wire.encode_frame(
            HostEvents(events=tuple(self._sent_with_hello.values()), mono=time.monotonic())
        )

    def _record_call(
        self,
        address: str,
        answer: Answer,
        detail: str,
        numeric_address: str = "",
        store_clients: int = -1,
        has_shaken_hands: bool = False,
        kind: str = "",
    ) -> None:
        previous = self._last_call
        is_repeat = previous is not None and previous.answer is answer
        self._last_call = Call(
            address=address,
            answer=answer,
            since=previous.since if is_repeat and previous is not None else time.monotonic(),
            tries=previous.tries + 1 if is_repeat and previous is not None else 1,
            met=numeric_address,
            said=detail,
            kind=kind,
            joined=store_clients,
            shook=has_shaken_hands or (previous is not None and previous.shook),
            is_given_by_user=self._is_user_given,
        )
        self.events.append(RendezvousProbed(call=self._last_call))
        if not is_repeat:
            self._wake()

    def send_events(self, now: float, events: list[Event]) -> None:
        """Send what is new on this host to the leader, and remember the newest state for a reconnect."""
        self._fact_reports |= {e.pid: e for e in events if isinstance(e, MemberFactsReported)}
        self._samples |= {e.pid: e for e in events if isinstance(e, ProcessSampled)}
        self._exits |= {e.pid: e for e in events if isinstance(e, ProcessExited)}
        self._interruptions += [e for e in events if isinstance(e, AgentInterrupted)]
        self._strays |= {
            e.knock.peer: e for e in events if isinstance(e, StrangerConnected) and _is_stray(e)
        }
        writer = self._writer
        # They are remembered above and go with the next Hello.
        if writer is None or writer.is_closing():
            return
        news = tuple(e for e in events if self._is_news(now, e))
        news = tuple(self._unsent) + news
        self._unsent = []
        if news:
            writer.write(wire.encode_frame(HostEvents(events=news, mono=time.monotonic())))

    def check_silence(self, now: float) -> None:
        """Report a leader that has not answered for a while although the stream to it is open."""
        sock = self._writer.get_extra_info("socket") if self._writer is not None else None
        lost, recovered = self._silence.find_changes(
            now, {0: lambda: silence_seconds(sock)} if sock is not None else {}
        )
        if lost:
            address = f" ({self._leader_address})" if self._leader_address else ""
            text = f"nothing has come from the leader for {HOST_AWAY_AFTER_S:.0f} s{address}"
            self.commands.append(ShowNote(text=text))
            self._record_call(
                self._leader_address,
                Answer.SILENT,
                f"nothing has come from it for {HOST_AWAY_AFTER_S:.0f} s",
            )
        elif recovered:
            self.commands.append(ShowNote(text="the leader answers again"))
            self._record_call(self._leader_address, Answer.ABOARD, "", has_shaken_hands=True)

    def _is_news(self, now: float, event: Event) -> bool:
        match event:
            case ProcessSampled():
                box = event.box
                marker = event.state, box and (
                    box.phase, box.round, box.step, box.ops, box.op is None, box.raised is None
                )  # fmt: skip
                previous, sent_at = self._last_markers.get(event.pid, (None, 0.0))
                if (
                    previous == marker or _is_minor_change(previous, marker)
                ) and now - sent_at < REPEAT_INTERVAL_S:
                    return False
                self._last_markers[event.pid] = marker, now
                return True
            case (
                ProcessExited()
                | StackSampled()
                | TrafficSampled()
                | MemberFactsReported()
                | CallsTraced()
                | ResourcesMeasured()
                | SnapshotTaken()
            ):
                return True
            case AgentInterrupted():
                return True
            case LockWaitsSampled():
                # An empty list is news once: it says that nobody waits any more.
                previous, self._lock_waits = self._lock_waits, event.waits
                return event.waits != previous
            case StrangerConnected():
                return _is_stray(event)
        return False

    def _handle_message(self, message: Message) -> None:
        match message:
            case LeaderCommands():
                self.commands += message.commands
                if any(isinstance(c, OpenGate) for c in message.commands):
                    self._on_gate_open()
            case RollCallEnded():
                self._on_gate_open()
            case LinkTestRequest():
                # Kept in an attribute, since the loop holds tasks only weakly.
                self._link_probe = asyncio.ensure_future(self._probe_links(message.targets))
            case PortReleaseRequest():
                self._release_port()
                if self._writer is not None:
                    self._writer.write(wire.encode_frame(PortReleased()))

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
        results = await try_links(self._identity(), targets)
        if self._writer is not None:
            self._writer.write(wire.encode_frame(results))

    def hang_up(self) -> None:
        """Disconnect from this leader; `run_calls` connects to the next one."""
        if self._writer is not None:
            self._writer.close()

    def close(self) -> None:
        """Disconnect for good. A stream that is closed in order loses nothing that was written."""
        self.is_done = True
        if self._writer is not None:
            self._writer.close()


def _is_stray(event: Event) -> bool:
    """Return True if this is a member that connected to this host instead of to the leader."""
    return isinstance(event, StrangerConnected) and event.knock.kind == "elsewhere"


def _is_minor_change(previous: object, current: object) -> bool:
    """Return True if only steps and operations advanced: those are sent every `REPEAT_INTERVAL_S`."""
    if not isinstance(previous, tuple) or not isinstance(current, tuple):
        return False
    previous_box, current_box = previous[1], current[1]
    if previous_box is None or current_box is None:
        return False
    return bool(
        previous[0] == current[0]
        and previous_box[:2] == current_box[:2]
        and previous_box[5] == current_box[5]
    )
