"""The host where all meet: takes members in, passes on what they tell, sends them what is decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from allaboard.blackbox.clock import timed
from allaboard.cluster.silence_detector import SilenceDetector
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.listener import Listener, MemberConnection
from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S, HOST_LOST_AFTER_S
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import (
    Message,
    Opened,
    Orders,
    Release,
    Released,
    Told,
    Tried,
    TryThese,
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
"""Seconds that members get to close their ports before the first is let through."""
BATCHING_FROM_AGENTS, BATCHING_DELAY_PER_AGENT_S, MAX_BATCHING_DELAY_S = 128, 2e-6, 0.02
"""With so many members here what they tell is gathered, for each of them so long (s), for all of them so
long at the most, and judged at once."""
WORKER_NUMBER_BITS = 12
"""Bits for the workers of one agent in the number by which they are called here."""
FRAMEWORK_CLIENT_KINDS = {"torch": "store", "tensorflow": "grpc", "jax": "grpc"}
"""How a framework's own client knocks."""


def stranger_event(framework: str, knock: Knock) -> StrangerConnected:
    """Somebody came who is not of the roll call; a client of this framework is a member's."""
    return StrangerConnected(
        knock=knock, member=knock.kind == FRAMEWORK_CLIENT_KINDS.get(framework)
    )


class Leader:
    """``events`` collects what came from other hosts; ``framework`` says whose clients are ours."""

    def __init__(
        self,
        job: str,
        secret: bytes,
        framework: str,
        wake: Callable[[], None],
        tls: TlsFiles | None = None,
        round_: int = 0,
    ) -> None:
        self.listener = Listener(job, secret, self._aboard, self._said, self._knocked, tls, round_)
        self.framework = framework
        self.events: list[Event] = []
        self._wake = wake
        self._waking: asyncio.TimerHandle | None = None
        self._members: dict[int, MemberConnection] = {}
        self._held: list[OpenGate] = []
        self._releasing: dict[int, MemberConnection] | None = None
        self._released_by = 0.0
        self._names: dict[int, tuple[int, str]] = {}
        self._hush = SilenceDetector()
        self._opened = False
        self.is_patient = True
        """Whether a host that was let through may be out of reach for a while."""
        self.met_count = 0
        """How many other agents have been here."""
        self._last_words: list[Command] = []
        self._word = b""
        self._ended = False
        self.ports_elsewhere = False
        """Whether members listen on the framework's ports too, and must close them first."""

    @property
    def connected_count(self) -> int:
        """How many other agents are here now."""
        return len(self._members)

    @property
    def lost_hosts(self) -> tuple[str, ...]:
        """The hosts whose agents were here, and are not any more; nobody has come in their place."""
        heard = self._members.keys() - self._hush.silent_since.keys()
        here = {self._names[n] for n in heard}
        lost = (who for n, who in self._names.items() if n not in heard)
        return tuple(dict.fromkeys(host for rank, host in lost if (rank, host) not in here))

    def check_silences(self, now: float) -> list[Command]:
        """Who is away though its stream is open, and who is heard again, since this was asked last."""
        if not self._hush.is_due(now):
            return []
        silences = {n: m.stream.seconds_silent for n, m in self._members.items()}
        gathers = self._releasing is None
        gone, back = self._hush.find_changes(
            now, silences, HOST_LOST_AFTER_S if gathers else HOST_AWAY_AFTER_S
        )
        if gathers:
            # It may call anew. The kernel ends such a stream, too, but begins to count once more where
            # something was sent to that host meanwhile.
            for number in gone:
                self._members[number].stream.abort()
            return []
        for number in gone:
            self.events.append(AgentDisconnected(agent=number, at=self._hush.silent_since[number]))
        self.events += [_here(self._members[n]) for n in back]
        said = [
            f"nothing has come from {self._names[n][1]} for {HOST_AWAY_AFTER_S:.0f} s" for n in gone
        ]
        said += [f"{self._names[n][1]} is heard again" for n in back]
        return [ShowNote(text=text) for text in said]

    def send_to_all(self, command: Command) -> None:
        """Tells all other hosts at once."""
        frame = self._word + wire.encode_frame(Orders(commands=(command,)))
        self._word = b""
        for member in list(self._members.values()):
            member.send_frame(frame)

    def route_command(self, command: Command) -> list[Command]:
        """Sends on what is meant for other hosts; returns what is to be done here."""
        match command:
            case OpenGate():
                return self._let_through(command)
            case SampleStacks():
                return self._look(command)
            case TraceCalls():
                return self._compare(command)
            case ProbeLinks():
                if command.agent == 0:
                    return [command]
                self._send(command.agent, TryThese(targets=command.targets))
                return []
            case KillForReplacement() if split_process_key(command.pid)[0]:
                agent, pid = split_process_key(command.pid)
                order = msgspec.structs.replace(command, pid=pid)
                self._send(agent, Orders(commands=(order,)))
                return [ShowNote(text=f"{command.text}; it is ended, to be replaced")]
            case RestartWorker() if command.worker >> WORKER_NUMBER_BITS:
                return self._replace(command)
            case AnnounceFinding() | ShowNote() | EndJob() | ReportInterruption():
                self._ended = self._ended or isinstance(command, EndJob)
                if not isinstance(command, ShowNote):
                    self._last_words.append(command)
                self._word += wire.encode_frame(Orders(commands=(command,)))
                return [command]
        return [command]

    def send_due(self, now: float) -> list[Command]:
        """Tells all what they are told alike, and those who stand at the gate that it opens, once every
        port that a framework will bind is free. To be called after `route`."""
        word, self._word = self._word, b""
        here: list[Command] = []
        opens: dict[int, bytes] = {}
        if self._releasing is not None and not (self._releasing and now < self._released_by):
            self._releasing = {}
            here, opens = _opened(self._held)
            self._held = []
            if not self._opened:
                self._opened = True
                self._outlast(opens)
        for number, member in list(self._members.items()) if word or opens else ():
            frames = word + opens.get(number, b"") if opens else word
            if frames:
                member.send_frame(frames)
        for number in opens:  # once all have the word, which is waited for
            if number in self._members and self.is_patient:
                self._members[number].stream.tolerate_silence()
        return here

    def _outlast(self, opens: dict[int, bytes]) -> None:
        """Those of whose members nobody is held (parameter servers, workers beside a chief) train now too."""
        for number in self._members.keys() - opens.keys():
            self._send(number, Opened())
            if self.is_patient:
                self._members[number].stream.tolerate_silence()

    def close(self) -> None:
        self.listener.close()
        if self._waking is not None:
            self._waking.cancel()

    def _let_through(self, command: OpenGate) -> list[Command]:
        self._held.append(command)
        if self._releasing is None:
            # The port first, then the word: a framework's client that comes early is refused and
            # tries again, one that lands in our backlog would be reset.
            self.listener.close_port()
            self._releasing = dict(self._members) if self.ports_elsewhere else {}
            self._released_by = time.monotonic() + PORT_RELEASE_TIMEOUT_S
            for number in self._releasing:
                self._send(number, Release())
        return []

    def _replace(self, command: RestartWorker) -> list[Command]:
        """The agent that had started it starts it again."""
        number = command.worker >> WORKER_NUMBER_BITS
        worker = command.worker - (number << WORKER_NUMBER_BITS)
        self._send(number, Orders(commands=(msgspec.structs.replace(command, worker=worker),)))
        host = self._names[number][1]
        return [ShowNote(text=f"{command.reason}: {host} starts it again")]

    def _look(self, command: SampleStacks) -> list[Command]:
        wanted = _by_agent(command.pids)
        for agent, pids in wanted.items():
            if agent:
                self._send(agent, Orders(commands=(SampleStacks(pids=pids),)))
        return [SampleStacks(pids=wanted[0])] if 0 in wanted else []

    def _compare(self, command: TraceCalls) -> list[Command]:
        here: list[Command] = []
        for agent, pids in _by_agent(command.pids).items():
            order = msgspec.structs.replace(command, pids=pids)
            if agent:
                self._send(agent, Orders(commands=(order,)))
            else:
                here.append(order)
        return here

    def _send(self, number: int, word: Message) -> None:
        member = self._members.get(number)
        if member is not None:
            member.send_message(word)

    def _aboard(self, member: MemberConnection) -> None:
        self._members[member.number] = member
        self._names[member.number] = member.hello.rank, member.hello.host
        self.met_count = len(self._names)
        if self._ended:  # it is late; the verdict is for all
            member.send_message(Orders(commands=tuple(self._last_words)))
        self.events.append(_here(member))
        self._stir()

    def _said(self, member: MemberConnection, word: Message | None) -> None:
        match word:
            case None:
                if self._members.get(member.number) is not member:
                    return  # it has come again over another stream
                self._members.pop(member.number, None)
                if self._releasing is not None:
                    self._releasing.pop(member.number, None)
                self.events.append(AgentDisconnected(agent=member.number, at=time.monotonic()))
            case Told():
                member.update_offset(word.mono)
                self.events += [e for t in word.events if (e := _ours(t, member)) is not None]
            case Tried():
                tried = LinksProbed(agent=member.number, links=word.links, worked=word.worked)
                self.events.append(tried)
            case Released():
                if self._releasing is not None:
                    self._releasing.pop(member.number, None)
        self._stir()

    def _stir(self) -> None:
        """There is something to judge."""
        if len(self._members) < BATCHING_FROM_AGENTS:
            self._wake()
        elif self._waking is None:
            after = min(MAX_BATCHING_DELAY_S, len(self._members) * BATCHING_DELAY_PER_AGENT_S)
            self._waking = asyncio.get_running_loop().call_later(after, self._stirred)

    def _stirred(self) -> None:
        self._waking = None
        self._wake()

    def _knocked(self, knock: Knock) -> None:
        event = stranger_event(self.framework, knock)
        self.events.append(event)
        if event.member:
            self.listener.close_port()  # at once: we must never be the silent listener
        self._wake()


def _here(member: MemberConnection) -> AgentConnected:
    hello = member.hello
    return AgentConnected(
        agent=member.number,
        host=hello.host,
        data=hello.data,
        rank=hello.rank,
        ahead=member.wall_offset,
    )


def _opened(held: list[OpenGate]) -> tuple[list[Command], dict[int, bytes]]:
    """What is let through on this host, and what each other agent is sent."""
    here: list[Command] = []
    opens: dict[int, bytes] = {}
    said: dict[tuple[int, int], bytes] = {}
    """Pids of many hosts are the same, above all in containers."""
    for command in held:
        agent, pid = split_process_key(command.pid)
        if agent == 0:
            here.append(command)
            continue
        frame = said.get((pid, command.round))
        if frame is None:
            order = OpenGate(pid=pid, round=command.round, beside=command.beside)
            frame = said[pid, command.round] = wire.encode_frame(Orders(commands=(order,)))
        opens[agent] = opens[agent] + frame if agent in opens else frame
    return here, opens


def _by_agent(called: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """The pids of each agent."""
    wanted: dict[int, tuple[int, ...]] = {}
    for agent, pid in map(split_process_key, called):
        wanted[agent] = (*wanted.get(agent, ()), pid)
    return wanted


def _ours(event: Event, member: MemberConnection) -> Event | None:
    """An event of another host, with our clock and our name for the process; None for what is no
    business of ours."""
    late, number = member.clock_offset, member.number
    match event:
        case ProcessSampled():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                worker=(number << WORKER_NUMBER_BITS) + event.worker,
                at=event.at + late,
                box=timed(event.box, late) if event.box is not None else None,
                host=member.hello.host,
            )
        case ProcessExited() | StackSampled() | TrafficSampled():
            called = process_key(number, event.pid)
            return msgspec.structs.replace(event, pid=called, at=event.at + late)
        case ResourcesMeasured():
            return msgspec.structs.replace(event, at=event.at + late, host=member.hello.host)
        case AgentInterrupted():
            return AgentInterrupted(
                signal=event.signal, at=event.at + late, agent=number, host=member.hello.host
            )
        case SnapshotTaken():
            return msgspec.structs.replace(event, at=event.at + late)
        case LockWaitsSampled():
            named = [
                msgspec.structs.replace(w, waiter=process_key(number, w.waiter))
                for w in event.waits
            ]
            return LockWaitsSampled(waits=tuple(named), agent=number)
        case MemberFactsReported():
            return MemberFactsReported(pid=process_key(number, event.pid), facts=event.facts)
        case CallsTraced():
            return msgspec.structs.replace(event, pid=process_key(number, event.pid))
        case StrangerConnected() if event.knock.kind == "elsewhere":
            knock = msgspec.structs.replace(event.knock, at=event.knock.at + late)
            return StrangerConnected(knock=knock)
    return None
