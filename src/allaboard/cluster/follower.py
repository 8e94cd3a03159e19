"""A host that goes to the meeting: calls until it is taken in, tells what happens, does as it is told."""

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
    Message,
    Opened,
    Orders,
    Release,
    Released,
    Told,
    TryThese,
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
"""Seconds between two attempts to a door that is not open yet, while somebody stands at ours; so many times
that otherwise."""
MAX_EAGER_TRIES = 100
"""Attempts with the same answer after which there is no hurry any more."""
HOST_LOST_ERRNOS = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
"""How a stream ends whose other host has gone without a word."""
REPEAT_INTERVAL_S = 1.0
"""Seconds after which a member of which nothing is new is told of again."""


class Follower:
    """``events`` are about our own attempts, ``commands`` what the coordinator asks for;
    ``release`` is called when our framework's port is to be closed."""

    def __init__(
        self,
        address: Callable[[], Awaitable[str]],
        who: Callable[[], Identity],
        release: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        self._address = address
        self._who = who
        self._release = release
        self._wake = wake
        self._writer: asyncio.StreamWriter | None = None
        self._call: Call | None = None
        self._last: dict[int, tuple[object, float]] = {}
        self._answers: dict[int, MemberFactsReported] = {}
        self._lives: dict[int, ProcessSampled] = {}
        self._ends: dict[int, ProcessExited] = {}
        self._strays: dict[str, StrangerConnected] = {}
        self._interrupted: list[AgentInterrupted] = []
        self._untold: list[Event] = []
        self._first: dict[int, Event] = {}
        """What went with our name, each by its identity; kept, so that no other has the same."""
        self._waits: tuple[LockWait, ...] = ()
        """For file locks, as last told."""
        self._links: asyncio.Task[None] | None = None
        self._hush = SilenceDetector()
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.is_done = False
        self.is_patient = True
        """Whether the host that leads may be out of reach for a while once it trains."""
        self._through = False
        self.is_user_given = False
        """Whether the user named the place to call."""

    @property
    def _met(self) -> str:
        """Where all met."""
        return self._call.address if self._call is not None else ""

    @property
    def may_be_unheard(self) -> bool:
        """Whether the door was not open yet, and may still open."""
        if self._writer is not None:
            return bool(self._untold)
        call = self._call
        return call is None or call.answer in (Answer.REFUSED, Answer.UNPOSTED)

    @property
    def is_linked(self) -> bool:
        """Whether another host's coordinator hears us and decides."""
        return self._writer is not None and not self._hush.silent_since

    async def run_calls(self) -> None:
        """Calls until the meeting takes us in, then obeys until the stream ends."""
        while not self.is_done:
            try:
                address = await self._address()
                if address:
                    await self._attempt(address, await connect_and_greet(address))
                else:
                    self._tell("", Answer.UNPOSTED, "the way to rank 0 is not posted")
            except LeaseStoreError as error:
                self._tell(error.place, Answer.FAILED, str(error), kind=error.kind)
            except (OSError, TimeoutError) as error:
                self._tell("", Answer.FAILED, getattr(error, "strerror", None) or str(error))
            await self._rest()

    async def _rest(self) -> None:
        for _ in range(IDLE_INTERVALS):
            await asyncio.sleep(RETRY_INTERVAL_S)
            eager = self._call is None or self._call.tries < MAX_EAGER_TRIES
            if eager and any(e.box and e.box.phase == Phase.ARRIVED for e in self._lives.values()):
                return

    async def _attempt(self, address: str, met: ConnectResult) -> None:
        if met.answer is not Answer.ABOARD or met.reader is None or met.writer is None:
            count = await count_store_clients(address) if met.answer is Answer.STORE else -1
            self._tell(address, met.answer, met.detail, met.numeric_address, count)
            return
        try:
            await shake_hands(met, self._who(), told=self._first_words)
        except HandshakeRefusedError as error:
            self._tell(address, Answer.OTHER, str(error), met.numeric_address, kind=error.kind)
            met.writer.close()
            return
        except OSError as error:
            self._tell(address, Answer.CLOSED, str(error), met.numeric_address)
            met.writer.close()
            return
        self._writer = met.writer
        self._be(lively=True)
        self._last.clear()
        self._waits = ()
        self._untold = [e for e in self._before() if id(e) not in self._first]
        self._first = {}
        self._tell(address, Answer.ABOARD, "", met.numeric_address, shook=True)
        try:
            while True:
                self._obey(await wire.read_message(met.reader, wire.MAX_MEMBER_FRAME_BYTES))
                self._wake()
        except (OSError, asyncio.IncompleteReadError, wire.GarbledMessageError) as error:
            self._writer = None
            met.writer.close()
            if self._through and isinstance(error, OSError) and error.errno in HOST_LOST_ERRNOS:
                said = f"the host where all met does not answer any more: {error.strerror}"
                self.commands.append(ShowNote(text=said))
            self._tell(address, Answer.CLOSED, str(error) or "the stream ended", shook=True)

    def _before(self) -> list[Event]:
        """What happened before there was anybody to hear it."""
        happened: list[Event] = [*self._lives.values(), *self._answers.values()]
        return [*happened, *self._interrupted, *self._ends.values(), *self._strays.values()]

    def _first_words(self) -> bytes:
        """All that is known now goes with our name: a round trip less where many wait for one."""
        self._first = {id(e): e for e in self._before()}
        if not self._first:
            return b""
        return wire.encode_frame(Told(events=tuple(self._first.values()), mono=time.monotonic()))

    def _tell(
        self,
        address: str,
        answer: Answer,
        said: str,
        met: str = "",
        count: int = -1,
        shook: bool = False,
        kind: str = "",
    ) -> None:
        before = self._call
        same = before is not None and before.answer is answer
        self._call = Call(
            address=address,
            answer=answer,
            since=before.since if same and before is not None else time.monotonic(),
            tries=before.tries + 1 if same and before is not None else 1,
            met=met,
            said=said,
            kind=kind,
            joined=count,
            shook=shook or (before is not None and before.shook),
            given=self.is_user_given,
        )
        self.events.append(RendezvousProbed(call=self._call))
        if not same:
            self._wake()

    def send_events(self, now: float, events: list[Event]) -> None:
        """Passes on what is new on this host."""
        self._answers |= {e.pid: e for e in events if isinstance(e, MemberFactsReported)}
        self._lives |= {e.pid: e for e in events if isinstance(e, ProcessSampled)}
        self._ends |= {e.pid: e for e in events if isinstance(e, ProcessExited)}
        self._interrupted += [e for e in events if isinstance(e, AgentInterrupted)]
        self._strays |= {
            e.knock.peer: e for e in events if isinstance(e, StrangerConnected) and _strays(e)
        }
        writer = self._writer
        if writer is None or writer.is_closing():
            return
        fresh = tuple(e for e in events if self._fresh(now, e))
        fresh = tuple(self._untold) + fresh
        self._untold = []
        if fresh:
            writer.write(wire.encode_frame(Told(events=fresh, mono=time.monotonic())))

    def check_silence(self, now: float) -> None:
        """Whether the host that leads is away though the stream to it is open."""
        sock = self._writer.get_extra_info("socket") if self._writer is not None else None
        gone, back = self._hush.find_changes(
            now, {0: lambda: silence_seconds(sock)} if sock is not None else {}
        )
        if gone:
            place = f" ({self._met})" if self._met else ""
            said = (
                f"nothing has come from the host where all met for {HOST_AWAY_AFTER_S:.0f} s{place}"
            )
            self.commands.append(ShowNote(text=said))
            self._tell(
                self._met, Answer.SILENT, f"nothing has come from it for {HOST_AWAY_AFTER_S:.0f} s"
            )
        elif back:
            self.commands.append(ShowNote(text="the host where all met is heard again"))
            self._tell(self._met, Answer.ABOARD, "", shook=True)

    def _fresh(self, now: float, event: Event) -> bool:
        match event:
            case ProcessSampled():
                box = event.box
                marker = event.state, box and (
                    box.phase, box.round, box.step, box.ops, box.op is None, box.raised is None
                )  # fmt: skip
                before, at = self._last.get(event.pid, (None, 0.0))
                if (before == marker or _minor(before, marker)) and now - at < REPEAT_INTERVAL_S:
                    return False
                self._last[event.pid] = marker, now
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
                before, self._waits = self._waits, event.waits
                return event.waits != before
            case StrangerConnected():
                return _strays(event)
        return False

    def _obey(self, word: Message) -> None:
        match word:
            case Orders():
                self.commands += word.commands
                if any(isinstance(c, OpenGate) for c in word.commands):
                    self._pass()
            case Opened():
                self._pass()
            case TryThese():
                self._links = asyncio.ensure_future(self._try(word.targets))
            case Release():
                self._release()
                if self._writer is not None:
                    self._writer.write(wire.encode_frame(Released()))

    def _pass(self) -> None:
        """The roll call is over."""
        self._through = True
        self._be(lively=not self.is_patient)

    def _be(self, lively: bool) -> None:
        """``lively``: a leader whose host has gone is found out."""
        sock = self._writer.get_extra_info("socket") if self._writer is not None else None
        if sock is not None:
            set_lively(sock, lively)

    async def _try(self, targets: tuple[tuple[str, str], ...]) -> None:
        tried = await try_links(self._who(), targets)
        if self._writer is not None:
            self._writer.write(wire.encode_frame(tried))

    def hang_up(self) -> None:
        """Another host leads: goes there."""
        if self._writer is not None:
            self._writer.close()

    def close(self) -> None:
        """The last words have been told; a stream that closes in order loses none of them."""
        self.is_done = True
        if self._writer is not None:
            self._writer.close()


def _strays(event: Event) -> bool:
    """Whether it tells of a member that was led here instead of to the meeting."""
    return isinstance(event, StrangerConnected) and event.knock.kind == "elsewhere"


def _minor(before: object, now: object) -> bool:
    """Whether only steps and operations went on: the beat is enough for those."""
    if not isinstance(before, tuple) or not isinstance(now, tuple):
        return False
    one, other = before[1], now[1]
    if one is None or other is None:
        return False
    return bool(before[0] == now[0] and one[:2] == other[:2] and one[5] == other[5])
