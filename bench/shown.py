"""What the black boxes of a simulated job show beside its steps: calls, batches, pace, connections.

All settings are in the table at the top; what a trace draws from them is drawn once, when it is made.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

from allaboard.facts import Flow, Flows, Frame, GroupState, Loop, Pace, Signature, Traced
from allaboard.facts.samples import sample_signature
from allaboard.protocol.events import Event, TrafficSampled
from allaboard.protocol.process_keys import process_key

HOST = 8
"""Ranks on one host."""
RING = 1008
"""Calls that a box remembers."""
WARM, LAST = 16, 63
"""Steps before a pace is told, and of how many last ones it is."""
OTHERS = 0.1, 0.05
"""Shares of a step that a rank waits for others, and for data, in a job that is well."""
NOISE = 0.02
"""How far (share of a step) these differ between ranks."""
SLOWER = 0.8
"""A slow rank takes so much longer for its step (share of the usual one)."""
STARVED, HALF = (0.65, 0.9), (0.3, 0.5)
"""Shares of a step that all ranks wait for data: where the job is input-bound, and where it is not yet."""
SLOW_LINK = 2.0, 4.0
"""With a slow link steps take so many times as long, ..."""
FULL, ROOM = (0.85, 0.99), (0.02, 0.15)
"""... something is under way on it for this share of the time, and on the others for that."""
QUEUED, NEAR = 0.12, 0.0004
"""Round trips (s) on a link that is full, and on one that has room."""
SENT = 4e6
"""Bytes that a host sends to the next one in a step."""

STEP = Frame("/home/u/train.py", 40, "train")
LOADER = Frame("/home/u/train.py", 30, "train")
ONE, TWO, OWN, AFTER = (sample_signature(line=n) for n in (41, 42, 50, 60))
DDP = sample_signature("DDP backward", line=40, reduce="", dtype="", shape="")
Site = Callable[[int, int], Signature]
"""Which call a rank makes at a number, counted from 0."""


@dataclass
class Calls:
    """The calls of all ranks in the default group; ranks of one ``kind`` (a name) make the same."""

    ranks: int
    backward: bool
    made: dict[str, list[tuple[int, int, Signature]]] = field(default_factory=dict)
    known: dict[tuple[str, int, int], GroupState] = field(default_factory=dict)

    @property
    def step(self) -> tuple[Signature, ...]:
        """What every step calls."""
        return (DDP,) if self.backward else (ONE, TWO)

    def upto(
        self, kind: str, number: int, site: Callable[[int], Signature]
    ) -> list[tuple[int, int, Signature]]:
        """Digest, path and signature of each call; ``site`` of the number that is not known yet."""
        made = self.made.setdefault(kind, [])
        while len(made) < number:
            digest, path = made[-1][:2] if made else (0, 0)
            call = site(len(made))
            digest = (digest * 1000003 + call.required) & 0xFFFFFFFF
            path = (path * 1000003 + crc32(repr(call.site).encode())) & 0xFFFFFFFF
            made.append((digest, path, call))
        return made

    def state(
        self,
        kind: str,
        number: int,
        since: float,
        site: Callable[[int], Signature],
        flagged: int = 0,
    ) -> tuple[GroupState, ...]:
        """How far a rank of this kind is; () before its first call."""
        from allaboard.blackbox.collective_calls import _marked_calls

        if not number:
            return ()
        found = self.known.get((kind, number, flagged))
        if found is None:
            made = self.upto(kind, number, site)
            told = [n for n in _marked_calls(number) if n > number - RING]
            found = GroupState(
                name="0",
                round=1,
                number=number,
                since=since,
                size=self.ranks,
                ranks=tuple(range(self.ranks)),
                marks=tuple((n, made[n - 1][0]) for n in told),
                paths=tuple((n, made[n - 1][1]) for n in told),
                unordered=flagged,
                last_call=made[number - 1][2],
            )
            self.known[kind, number, flagged] = found
            if len(self.known) > 64:
                del self.known[next(iter(self.known))]
        return (found,)

    def traced(self, kind: str, number: int) -> Traced:
        """The last calls, as an agent reads them."""
        first = max(1, number - RING)
        made = self.made[kind][first - 1 : number]
        return Traced("0", 1, first, tuple((digest, call) for digest, _, call in made))


@dataclass
class Paces:
    """How long steps take and what in them, by rank; told anew once a second, as a box does."""

    step: float
    draw: random.Random
    ranks: int
    told: dict[int, tuple[float, Pace]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.noise = [self.draw.uniform(-NOISE, NOISE) for _ in range(self.ranks)]

    def of(
        self, rank: int, at: float, done: int, step: float, others: float, data: float
    ) -> Pace | None:
        """``others`` and ``data`` are the shares of a step of ``step`` s that it waits for them."""
        if done < WARM:
            return None
        when, pace = self.told.get(rank, (-1.0, None))
        if pace is None or at - when >= 1.0:
            near = 1.0 + self.noise[rank] + 1e-4 * (done % 13)  # no two medians are the same
            pace = Pace(min(LAST, done), step * near, step * data * near, step * others * near)
            self.told[rank] = at, pace
        return pace


def batches(done: int, whole: int = 0) -> tuple[Loop, ...]:
    """The loop over the data, in its first pass; ``whole``: it is over after so many."""
    if whole:
        return (Loop(LOADER, 1, whole, 1, whole),)
    return (Loop(LOADER, 1, done + 1),)


def pid_of(rank: int) -> int:
    """What events and commands call it: every host has its agent."""
    return process_key(rank // HOST, 100 + rank % HOST)


def host_of(rank: int) -> str:
    return f"h{rank // HOST}"


def address_of(host: int) -> str:
    return f"10.{host >> 16 & 255}.{host >> 8 & 255}.{host & 255}"


@dataclass
class Ring:
    """The connections of hosts that stand in a ring, as rings of collectives are made of them."""

    ranks: int
    draw: random.Random
    sent: dict[int, float] = field(default_factory=dict)
    busy: dict[int, float] = field(default_factory=dict)
    last: float = 0.0

    def __post_init__(self) -> None:
        self.hosts = (self.ranks + HOST - 1) // HOST
        self.full = {h: self.draw.uniform(*FULL) for h in range(self.hosts)}
        self.room = {h: self.draw.uniform(*ROOM) for h in range(self.hosts)}

    def looks(self, now: float, full: set[int], step: float) -> Iterator[Event]:
        """What each host's first rank exchanged with the next host; those in ``full`` send over a link that
        does not keep up."""
        passed, self.last = now - self.last if self.last else 0.0, now
        for host in range(self.hosts):
            slow = host in full
            share = (self.full if slow else self.room)[host]
            self.busy[host] = self.busy.get(host, 0.0) + share * passed
            self.sent[host] = self.sent.get(host, 0.0) + SENT / step * passed
            there = (host + 1) % self.hosts
            flow = Flow(
                local=f"{address_of(host)}:5000",
                remote=f"{address_of(there)}:6000",
                sent=int(self.sent[host]),
                rtt=QUEUED if slow else NEAR,
                least=NEAR / 2,
                busy=self.busy[host],
            )
            pid = pid_of(host * HOST)
            yield TrafficSampled(
                pid=pid, sampled_at=now, flows=(Flows(address_of(there), (flow,)),)
            )
