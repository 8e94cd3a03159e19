"""A roll call over real loopback sockets: the leader of a job with its state, and simulated hosts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.leader import Leader
from allaboard.cluster.transport import wire
from allaboard.cluster.transport.client_handshake import Identity, shake_hands
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.sealed_stream import ByteWriter
from allaboard.cluster.transport.wire import (
    ByteReader,
    HostEvents,
    LeaderCommands,
    LinkTestRequest,
    LinkTestResults,
    Message,
    PortReleased,
    PortReleaseRequest,
)
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Answer, Declared, Finding, Link, Phase
from allaboard.protocol.commands import AnnounceFinding, Command, OpenGate, ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    Event,
    MemberFactsReported,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

SECRET = b"s3cret"


class Rally:
    """Rank 0 of ``size`` leads here, on ``port``; `come` brings the others."""

    def __init__(self, size: int, framework: str = "torch", secret: bytes = b"") -> None:
        self.size = size
        self.framework = framework
        self.secret = secret
        self.woken = asyncio.Event()
        self.leader = Leader("job=1", secret, framework, self.woken.set)
        settings = JobSettings(launched=1, host="h0", joined=True, rank=0)
        self.job = JobState(settings, time.monotonic(), load_catalogue().entries, str)
        self.findings: list[Finding] = []
        self.through: set[int] = set()
        self.finished = asyncio.Event()

    async def __aenter__(self) -> Rally:
        await self.leader.listener.open_port(0)
        self.port = self.leader.listener.port
        self.address = f"127.0.0.1:{self.port}"
        here = AgentConnected(agent=0, host="h0", probe_address="127.0.0.1:1", rank=0)
        now = time.monotonic()
        self.leader.events += [
            RoleTaken(leads=True),
            here,
            WorkerLaunched(worker=0, pid=1, launched_at=now),
        ]
        self.leader.events += [
            self.seen(0, 1),
            MemberFactsReported(pid=1, facts={"count CPUs": "1"}),
        ]
        self._ticking = asyncio.ensure_future(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ticking.cancel()
        self.leader.close()
        await asyncio.sleep(0)

    async def _tick(self) -> None:
        while True:
            now = time.monotonic()
            events, self.leader.events = self.leader.events, []
            here: list[Command] = []
            for command in self.job.handle(now, *events):
                if isinstance(command, AnnounceFinding):
                    self.findings.append(command.finding)
                here += self.leader.route_command(command)
            here += self.leader.send_due(now)
            for command in here:
                if isinstance(command, OpenGate):
                    self.through.add(0)
                if isinstance(command, ProbeLinks):
                    self.leader.events.append(_works(command))
            self.woken.clear()
            try:
                async with asyncio.timeout(0.05):
                    await self.woken.wait()
            except TimeoutError:
                pass

    def seen(self, rank: int, pid: int) -> ProcessSampled:
        """The worker of this rank stands at the door."""
        now = time.monotonic()
        told = Declared(
            framework=self.framework,
            call="init_process_group",
            rank=rank,
            world_size=self.size,
            place=f"tcp://h0:{self.port}",
            local=False,
        )
        box = BoxReading(phase=Phase.ARRIVED, phase_since=now, round=1, declared=told)
        return ProcessSampled(
            pid=pid, worker=0, sampled_at=now, state="S", cpu=0.0, box=box, rank=rank
        )

    async def come(self, rank: int) -> None:
        """A host with this rank comes again and again until it is aboard; returns once its worker is
        let through."""
        reader, writer = await self._aboard(rank)
        while True:
            word = await wire.read_message(reader, wire.MAX_MEMBER_FRAME_BYTES)
            if isinstance(word, LinkTestRequest):
                writer.write(
                    wire.encode_frame(LinkTestResults(links=_links(f"h{rank}", word.targets)))
                )
            elif isinstance(word, PortReleaseRequest):
                writer.write(wire.encode_frame(PortReleased()))
            elif _opens(word):
                self.through.add(rank)
                writer.close()
                return

    async def come_and_go(self, rank: int) -> None:
        """A host comes aboard, and its stream breaks."""
        _, writer = await self._aboard(rank)
        while f"h{rank}" not in {
            m.who.host for m in self.job.status.view(time.monotonic()).members
        }:
            await asyncio.sleep(0.01)
        writer.transport.abort()
        while self.agents_elsewhere:
            await asyncio.sleep(0.01)

    @property
    def agents_elsewhere(self) -> set[str]:
        """Hosts whose agents are connected."""
        return set(self.job.status.view(time.monotonic()).clocks)

    async def _aboard(self, rank: int) -> tuple[ByteReader, ByteWriter]:
        who = Identity("job=1", self.secret, f"h{rank}", rank, "127.0.0.1:1", f"session of {rank}")
        while True:
            met = await connect_and_greet(self.address)
            if met.answer is Answer.ABOARD:
                break
            await asyncio.sleep(0.05)
        assert met.reader is not None and met.writer is not None
        admission = await shake_hands(met, who)
        answer = MemberFactsReported(pid=7, facts={"count CPUs": "1"})
        told = HostEvents(events=(self.seen(rank, 7), answer), mono=time.monotonic())
        admission.writer.write(wire.encode_frame(told))
        return admission.reader, admission.writer

    async def all_aboard(self, *besides: Callable[[], Awaitable[object]]) -> None:
        """All ranks come at once, while others do what they do."""
        tasks = [asyncio.ensure_future(one()) for one in besides]
        await asyncio.gather(*(self.come(rank) for rank in range(1, self.size)))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def told(self, rule: str) -> list[str]:
        """What was said by this rule."""
        return [f.summary for f in self.findings if f.rule == rule]

    async def until(self, rule: str, seconds: float = 20.0) -> list[str]:
        """... once it is said, within so many seconds."""
        end = time.monotonic() + seconds
        while not self.told(rule) and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return self.told(rule)


def _opens(word: Message) -> bool:
    return isinstance(word, LeaderCommands) and any(isinstance(c, OpenGate) for c in word.commands)


def _works(command: ProbeLinks) -> Event:
    from allaboard.protocol.events import LinksProbed

    return LinksProbed(agent=command.agent, links=_links("h0", command.targets))


def _links(source: str, targets: tuple[tuple[str, str], ...]) -> tuple[Link, ...]:
    return tuple(
        Link(
            source=source,
            target=host,
            address=address,
            answer=Answer.ABOARD,
            seconds=1e-4,
            rate=1e9,
        )
        for host, address in targets
    )
