"""Attempts of one host to reach another: over which address, and who answered."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from allaboard.facts.bounds import Instant, Measure, Pid, RankNumber, Whole


class Answer(StrEnum):
    """The end of an attempt to connect, as far as the kernel and the first bytes tell."""

    ABOARD = "aboard"
    """allaboard's roll call answered."""
    REFUSED = "refused"
    """The host is up and nothing listens there, or a firewall says so (ECONNREFUSED)."""
    SILENT = "silent"
    """No answer at all: the host is down, or a firewall drops (ETIMEDOUT)."""
    UNREACHABLE = "unreachable"
    """A router or the host's own table says that there is no way (EHOSTUNREACH, ENETUNREACH)."""
    NO_NAME = "no-name"
    """The name does not resolve on the host that tried."""
    CLOSED = "closed"
    """Connected, and closed or reset before a word was said."""
    MUTE = "mute"
    """Connected, and nothing is said: another program, or a process that is stopped."""
    STORE = "store"
    """A TCPStore: PyTorch's own rendezvous is open there."""
    GRPC = "grpc"
    """A gRPC server: TensorFlow's or JAX's own."""
    HTTP = "http"
    """A web server."""
    OTHER = "other"
    """Another program, of no kind that is known here."""
    CUT = "cut"
    """Small messages pass and large ones do not."""
    UNPOSTED = "unposted"
    """The place where the way to the meeting is posted can be read, and it is not there."""
    FAILED = "failed"
    """The attempt failed on the host that made it."""

    @property
    def is_foreign(self) -> bool:
        """True if another program than the roll call holds the port."""
        return self in (Answer.MUTE, Answer.STORE, Answer.GRPC, Answer.HTTP, Answer.OTHER)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """This host's attempts to reach the meeting place."""

    address: str
    """``host:port`` as it was given."""
    answer: Answer
    """How the last attempt ended."""
    since: Instant
    """When this answer came first (s, CLOCK_MONOTONIC)."""
    tries: Whole = 1
    """How often it came."""
    met: str = ""
    """The numeric address that was tried."""
    said: str = ""
    """The system's own words, or those of the leader that turns this host away."""
    kind: str = ""
    """Why this host is turned away: one of KNOCKS, "tls", or what etcd lacks ("auth", "full")."""
    joined: Whole = -1
    """How many clients a TCPStore says have joined; -1 if unknown."""
    shook: bool = False
    """True once the roll call there had taken this host in."""
    is_proven: bool = True
    """False if this host is turned away by a listener that has not proved that it belongs to the job."""
    closed_since: Instant = 0.0
    """When the port began to close after this host was turned away (s, CLOCK_MONOTONIC); 0 if it is open."""
    is_given_by_user: bool = False
    """True if the user named the place, and it was not read where the first host posts it (a launcher's
    store, a folder)."""


class Link(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One direction between two hosts."""

    source: str
    """The host that tried."""
    target: str
    """The host that it tried to reach."""
    address: str
    """The address of ``target`` that was tried."""
    answer: Answer
    """How the trial ended."""
    seconds: Measure = 0.0
    """Round trip of a few bytes (s); 0 if it did not get so far."""
    rate: Measure = 0.0
    """Bytes per second of a larger block; 0 if it did not get so far."""
    said: str = ""
    """The system's own words."""
    tries: Whole = 1
    """Trials, one after the other, that ended alike."""

    @property
    def works(self) -> bool:
        """True if the roll call answered."""
        return self.answer is Answer.ABOARD

    @property
    def is_lasting(self) -> bool:
        """True if the link failed in more than one moment."""
        return not self.works and self.tries > 1

    @property
    def description(self) -> str:
        """The answer, for people."""
        return f"{self.said or self.answer}{', twice' if self.tries > 1 else ''}"


class Usual(msgspec.Struct, frozen=True):
    """Links that work, if not all are listed one by one."""

    count: int
    """How many there are."""
    seconds: float
    """Median round trip (s)."""
    rate: float
    """Median rate (bytes per second)."""


class Silence(msgspec.Struct, frozen=True):
    """A connection of a process to another host on which what it sends is not acknowledged."""

    kind: str
    """"connect" or "send"."""
    address: str
    """The other end."""
    heard: bool | None = None
    """True if packets of the other side came in meanwhile all the same; None if that is not known yet."""


LACKING = ("no-secret", "no-tls", "tls-name", "version", "other-job")
"""Kinds of workers that run under allaboard but lack what the roll call asks of the members of its job."""


class Knock(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to the meeting place from a process that is not of this roll call."""

    peer: str
    """Address that it came from."""
    kind: str
    """One of KNOCKS."""
    said: str = ""
    """What it is, in words for people."""
    host: str = ""
    """The host that it says to be on; "" if it does not say."""
    rank: RankNumber = -1
    """The rank that it says to be; -1 if it does not say."""
    times: Whole = 1
    """How often it came from there."""
    knocked_at: Instant = 0.0
    """When it came last (s)."""

    @property
    def is_unequipped_worker(self) -> bool:
        """True if it is a worker that lacks what all others have, and says which host it is on."""
        return self.kind in LACKING and bool(self.host)

    @property
    def claimed_member(self) -> str:
        """The member that it says to be; "" if it does not say."""
        return f"{self.host} (rank {self.rank})" if self.rank >= 0 else self.host


KNOCKS = (
    "store",
    "grpc",
    "http",
    "tls",
    "silent",
    "other",
    "other-job",
    "other-round",
    "no-meeting",
    "elsewhere",
    "no-secret",
    "no-tls",
    "tls-name",
    "version",
    "forged",
)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a port of this host which the job needs, or what else keeps us from
    listening there."""

    address: str
    """``host:port``."""
    pid: Pid = 0
    """Its pid; 0 if it is not known."""
    command: str = ""
    """Its command line."""
    job: str = ""
    """Its launcher's id of its job; "" if that is not known."""
    ours: bool = False
    """True if its job has the id of ours."""
    answer: Answer = Answer.OTHER
    """What answers at the port."""
    said: str = ""
    """The system's words, if nobody holds the port and it refuses us for another reason."""
    looked_at: Instant = 0.0
    """When it was looked at (s)."""
