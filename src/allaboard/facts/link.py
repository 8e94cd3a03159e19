"""What one host met when it tried to reach another: over which address, and who answered."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Answer(StrEnum):
    """How an attempt to connect ended, as far as the kernel and the first bytes tell."""

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
    def foreign(self) -> bool:
        """Whether another program than the roll call holds the port."""
        return self in (Answer.MUTE, Answer.STORE, Answer.GRPC, Answer.HTTP, Answer.OTHER)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """This host's attempts to reach the meeting place.

    ``address`` is ``host:port`` as it was given and ``met`` the numeric one that was tried;
    ``since`` (s, CLOCK_MONOTONIC) when this answer came first, ``tries`` how often; ``said`` the
    system's own words, or those of who turns this host away, and ``kind`` why: one of KNOCKS, "tls", or
    what etcd lacks ("auth", "full"); ``joined`` how many clients a TCPStore says have joined, -1 if unknown;
    ``shook`` once the roll call there had taken this host in; ``given`` where the user named the place, and
    it was not read where the first host posts it (a launcher's store, a folder).
    """

    address: str
    answer: Answer
    since: float
    tries: int = 1
    met: str = ""
    said: str = ""
    kind: str = ""
    joined: int = -1
    shook: bool = False
    given: bool = False


class Link(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One direction between two hosts: ``source`` tried ``address`` of ``target``.

    ``seconds`` is the round trip of a few bytes, ``rate`` what a larger block took (bytes/s); both
    0 where it did not get so far. ``tries``: trials, one after the other, that failed alike.
    """

    source: str
    target: str
    address: str
    answer: Answer
    seconds: float = 0.0
    rate: float = 0.0
    said: str = ""
    tries: int = 1

    @property
    def works(self) -> bool:
        return self.answer is Answer.ABOARD

    @property
    def lasting(self) -> bool:
        """Whether it is more than one lost moment that it does not work."""
        return not self.works and self.tries > 1

    @property
    def told(self) -> str:
        """What was met, for people."""
        return f"{self.said or self.answer}{', twice' if self.tries > 1 else ''}"


class Usual(msgspec.Struct, frozen=True):
    """Links that work, where not all are listed one by one: how many, the median round trip (s) and
    rate (bytes/s)."""

    count: int
    seconds: float
    rate: float


class Silence(msgspec.Struct, frozen=True):
    """A connection of a process to another host, on which what it sends is not acknowledged: ``kind`` is
    "connect" or "send", ``address`` the other end. ``heard``: packets of the other side came in meanwhile
    all the same; None where that is not known yet."""

    kind: str
    address: str
    heard: bool | None = None


LACKING = ("no-secret", "no-tls", "version", "other-job")
"""Kinds of workers that have allaboard, and not what the roll call asks of those of its job."""


class Knock(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody came to the meeting place who is not of this roll call.

    ``kind`` is one of KNOCKS; ``said`` are the words for people; ``times`` how often from there. ``host`` and
    ``rank`` are what it says to be; "" and -1 where it does not say it.
    """

    peer: str
    kind: str
    said: str = ""
    host: str = ""
    rank: int = -1
    times: int = 1
    at: float = 0.0

    @property
    def named(self) -> bool:
        """Whether it is a worker that lacks what all others have, and says of which host it is."""
        return self.kind in LACKING and bool(self.host)

    @property
    def who(self) -> str:
        """Who it says to be; "" where it does not say it."""
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
    "elsewhere",
    "no-secret",
    "no-tls",
    "version",
)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a port of this host that the job needs; pid 0 where it is not known. Or nobody
    does, and the system does not let us listen there for another reason: ``said``.
    ``job``: what its launcher calls its job, "" where that is not known; ``ours``: as ours is called."""

    address: str
    pid: int = 0
    command: str = ""
    job: str = ""
    ours: bool = False
    answer: Answer = Answer.OTHER
    said: str = ""
    at: float = 0.0
