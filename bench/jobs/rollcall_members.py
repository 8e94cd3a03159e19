"""Simulated hosts of a roll call, many in one process: bare sockets, so that they cost little.

``rollcall_members.py WAY PORT SIZE FIRST LAST`` waits for a line on its input, lets hosts FIRST to LAST
come all at once, and prints when the first and the last began to connect, and when the last had its
verdict. What each will tell is written before, as it would be on a host of its own; its clocks are read when
it comes. WAY is "allaboard" (the whole protocol: proof, declaration, fingerprint, links, verdict),
"store" (the same facts through PyTorch's TCPStore: a key each, a counter, and a wait for the verdict) or
"links" (through a TCPStore, too, and between both it gets what to try, and tells what it met).
"""

import errno
import gc
import json
import os
import resource
import select
import socket
import struct
import sys
import time

import msgspec
from rollcall_leader import SECRET, facts, seen, works

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.handshake_proof import HandshakeKeys, proofs_match
from allaboard.cluster.transport.sealed_records import RecordOpener, RecordSealer
from allaboard.cluster.transport.wire import (
    Challenge,
    Hello,
    HostEvents,
    LeaderCommands,
    LinkTestRequest,
    LinkTestResults,
    PortReleased,
    PortReleaseRequest,
)
from allaboard.protocol.commands import AnnounceFinding, Command, OpenGate
from allaboard.protocol.events import MemberFactsReported

BIND_ADDRESS_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of ip(7)."""
THEN = 1234567.25
"""Stands for the moment at which a host comes."""


class Member:
    """One host's agent, as far as the roll call goes."""

    sock: socket.socket
    keys: HandshakeKeys | None = None
    sealer: RecordSealer | None = None
    opener: RecordOpener | None = None

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.data = b""
        self.left = b""
        self.stage = 0
        self.begun = False
        self.nonce = f"{rank:032x}"
        self.told = self.prepared()

    def prepared(self) -> bytes:
        """What it tells of its worker, but for the time."""
        answer = MemberFactsReported(pid=7, facts=facts(self.rank))
        events = (seen(self.rank, self.size, 7, THEN), answer)
        return msgspec.json.encode(HostEvents(events=events, mono=THEN))

    def begin(self, now: bytes) -> bytes:
        self.told = self.told.replace(str(THEN).encode(), now)
        return wire.GREETING

    def heard(self, data: bytes) -> tuple[bytes, bool]:
        """What is answered, and whether the verdict is here."""
        self.data += data
        if self.stage == 0:
            if len(self.data) < len(wire.BANNER):
                return b"", False
            assert self.data.startswith(wire.BANNER), self.data
            self.data = self.data[len(wire.BANNER) :]
            self.stage = 1
        out = b""
        if self.opener is not None:
            self.data = self.left + self.opener.open(self.data)
        while True:
            word, self.data = wire.take_message(self.data, wire.MAX_MEMBER_FRAME_BYTES)
            if word is None:
                if self.opener is not None:
                    self.left, self.data = self.data, b""
                return self.seal(out), False
            if isinstance(word, Challenge):
                told = wire.LENGTH_PREFIX.pack(len(self.told)) + self.told
                return self._hello(word) + self.seal(told), False
            if isinstance(word, wire.Welcome):
                if self.keys is None:
                    continue
                assert proofs_match(word.proof, self.keys.listener_proof(word))
                self.opener = RecordOpener(self.keys.direction_keys()[1])
                self.data = self.opener.open(self.data)
            elif isinstance(word, LinkTestRequest):
                out += wire.encode_frame(LinkTestResults(worked=works(len(word.targets))))
            elif isinstance(word, PortReleaseRequest):
                out += wire.encode_frame(PortReleased())
            elif isinstance(word, LeaderCommands) and any(map(_verdict, word.commands)):
                return out, True

    def seal(self, frames: bytes) -> bytes:
        return frames if self.sealer is None else self.sealer.seal(frames)

    def _hello(self, challenge: Challenge) -> bytes:
        hello = Hello(
            version=wire.PROTOCOL_VERSION, nonce=self.nonce, proof="", job="job=1", host=f"h{self.rank}",
            pid=7, rank=self.rank, data="127.0.0.1:1", wall=time.time(), mono=time.monotonic(),
            session=self.nonce,
        )  # fmt: skip
        if not SECRET:
            return wire.encode_frame(hello)
        self.keys = HandshakeKeys(SECRET, challenge, hello)
        self.sealer = RecordSealer(self.keys.direction_keys()[0])
        return wire.encode_frame(msgspec.structs.replace(hello, proof=self.keys.caller_proof()))


def _verdict(command: Command) -> bool:
    missing = isinstance(command, AnnounceFinding) and command.finding.rule == "JOIN001"
    return missing or isinstance(command, OpenGate)


def sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


class StoreMember(Member):
    """The same through a TCPStore: torch/csrc/distributed/c10d/TCPStoreBackend.hpp. SET 1, ADD 4,
    GET 3, WAIT 6; a client puts "/" before each key."""

    def prepared(self) -> bytes:
        return msgspec.json.encode((seen(self.rank, self.size, 7, THEN), facts(self.rank)))

    def begin(self, now: bytes) -> bytes:
        told = self.told.replace(str(THEN).encode(), now)
        return wire.GREETING + self.tells("member", told, "count") + waits("verdict")

    def tells(self, what: str, told: bytes, counter: str) -> bytes:
        """Sets a key of its own, and counts itself."""
        return (
            b"\x01" + sized(f"/{what}/{self.rank}".encode()) + sized(told)
            + b"\x04" + sized(f"/{counter}".encode()) + struct.pack("<q", 1)
        )  # fmt: skip

    def heard(self, data: bytes) -> tuple[bytes, bool]:
        self.data += data
        return b"", len(self.data) >= 4 + 8 + 1  # pong, the count, and the end of the wait


def waits(key: str) -> bytes:
    return b"\x06" + struct.pack("<Q", 1) + sized(f"/{key}".encode())


class LinksMember(StoreMember):
    """Gets the list of those to try before, and tells what it met."""

    def begin(self, now: bytes) -> bytes:
        told = self.told.replace(str(THEN).encode(), now)
        return wire.GREETING + self.tells("member", told, "count") + waits(f"try/{self.rank}")

    def heard(self, data: bytes) -> tuple[bytes, bool]:
        self.data += data
        if self.stage == 0 and len(self.data) >= 4 + 8 + 1:
            self.data, self.stage = self.data[13:], 1
            return b"\x03" + sized(f"/try/{self.rank}".encode()), False
        if self.stage == 1 and len(self.data) >= 8:
            (size,) = struct.unpack_from("<Q", self.data)
            if len(self.data) >= 8 + size:
                tried = works(len(msgspec.json.decode(self.data[8 : 8 + size])))
                self.data, self.stage = self.data[8 + size :], 2
                return self.tells("tried", tried, "count of tried") + waits("verdict"), False
        return b"", self.stage == 2 and len(self.data) >= 8 + 1


WAYS = {"allaboard": Member, "store": StoreMember, "links": LinksMember}


def connect(port: int, source: str) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(
        socket.SOL_IP, BIND_ADDRESS_NO_PORT, 1
    )  # else it looks long for one that is free
    sock.bind((source, 0))
    code = sock.connect_ex(("127.0.0.1", port))
    assert code in (0, errno.EINPROGRESS), os.strerror(code)
    return sock


def come(way: str, port: int, crowd: list[Member]) -> dict[str, float]:
    poll = select.epoll()
    members: dict[int, Member] = {}
    began, cpu = time.monotonic(), time.process_time()
    for one in crowd:
        # A TCPStore asks for the name of each address: only this one has one on every machine.
        source = f"127.0.1.{1 + one.rank % 200}" if way == "allaboard" else "127.0.0.1"
        one.sock = connect(port, source)
        members[one.sock.fileno()] = one
        poll.register(one.sock.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    arrived = time.monotonic()
    left = len(members)
    while left:
        for fd, what in poll.poll(60) or sys.exit(f"{left} members wait for ever"):
            one = members[fd]
            if not one.begun:
                one.begun = True
                one.sock.send(one.begin(str(time.monotonic()).encode()))
            if not what & ~select.EPOLLOUT:
                continue
            data = one.sock.recv(1 << 16)  # more than ever comes at once
            if not data:
                sys.exit(f"member {one.rank} was cut off in stage {one.stage}")
            out, done = one.heard(data)
            if out:
                one.sock.send(out)
            left -= done
    verdict = time.monotonic()
    return {
        "began": began,
        "arrived": arrived,
        "verdict": verdict,
        "cpu": time.process_time() - cpu,
    }


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    way, port, size, first, last = sys.argv[1], *map(int, sys.argv[2:6])
    crowd = [WAYS[way](rank, size) for rank in range(first, last)]
    gc.freeze()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(come(way, port, crowd)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
