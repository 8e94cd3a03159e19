"""Simulated hosts of a roll call, many in one process: bare sockets, so that they cost little.

``rollcall_members.py WAY PORT SIZE FIRST LAST`` waits for a line on its input, lets hosts FIRST to LAST
come all at once, and prints when the first and the last began to connect, and when the last had its
verdict. WAY is "allaboard" (the whole protocol: proof, declaration, fingerprint, links, verdict) or
"store" (the same facts through PyTorch's TCPStore: a key each, a counter, and a wait for the verdict).
"""

import errno
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

from allaboard.coordinator.events import Announce, Answered, Command, LetThrough
from allaboard.meeting import wire
from allaboard.meeting.wire import (
    Challenge,
    Hello,
    Orders,
    Release,
    Released,
    Told,
    Tried,
    TryThese,
)

BIND_ADDRESS_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of ip(7)."""


class Member:
    """One host's agent, as far as the roll call goes."""

    def __init__(self, sock: socket.socket, rank: int, size: int) -> None:
        self.sock = sock
        self.rank = rank
        self.size = size
        self.data = b""
        self.stage = 0
        self.nonce = ""

    def begin(self) -> bytes:
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
        while True:
            word, self.data = wire.take(self.data, wire.LONG)
            if word is None:
                return out, False
            if isinstance(word, Challenge):
                out += self._hello(word)
            elif isinstance(word, wire.Welcome):
                shown = wire.proof(SECRET, "listener", self.nonce, self.challenge, f"h{self.rank}")
                assert wire.proven(word.proof, shown)
                answer = Answered(pid=7, facts=facts(self.rank))
                events = (seen(self.rank, self.size, 7), answer)
                out += wire.frame(Told(events=events, mono=time.monotonic()))
            elif isinstance(word, TryThese):
                out += wire.frame(Tried(worked=works(len(word.targets))))
            elif isinstance(word, Release):
                out += wire.frame(Released())
            elif isinstance(word, Orders) and any(map(_verdict, word.commands)):
                return out, True

    def _hello(self, challenge: Challenge) -> bytes:
        self.nonce = f"{self.rank:032x}"
        self.challenge = challenge.nonce
        hello = Hello(
            version=wire.VERSION, nonce=self.nonce, proof="", job="job=1", host=f"h{self.rank}",
            pid=7, rank=self.rank, data="127.0.0.1:1", wall=time.time(), mono=time.monotonic(),
            session=self.nonce,
        )  # fmt: skip
        shown = wire.proof(SECRET, "caller", challenge.nonce, self.nonce, wire.claimed(hello))
        return wire.frame(msgspec.structs.replace(hello, proof=shown))


def _verdict(command: Command) -> bool:
    missing = isinstance(command, Announce) and command.finding.rule == "JOIN001"
    return missing or isinstance(command, LetThrough)


def sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


class StoreMember(Member):
    """The same through a TCPStore: torch/csrc/distributed/c10d/TCPStoreBackend.hpp. SET 1, ADD 4,
    WAIT 6; a client puts "/" before each key."""

    def begin(self) -> bytes:
        told = wire._ENCODER.encode((seen(self.rank, self.size, 7), facts(self.rank)))
        return (
            wire.GREETING
            + b"\x01" + sized(f"/member/{self.rank}".encode()) + sized(told)
            + b"\x04" + sized(b"/count") + struct.pack("<q", 1)
            + b"\x06" + struct.pack("<Q", 1) + sized(b"/verdict")
        )  # fmt: skip

    def heard(self, data: bytes) -> tuple[bytes, bool]:
        self.data += data
        return b"", len(self.data) >= 4 + 8 + 1  # pong, the count, and the end of the wait


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


def come(way: str, port: int, size: int, first: int, last: int) -> dict[str, float]:
    poll = select.epoll()
    members: dict[int, Member] = {}
    kind = Member if way == "allaboard" else StoreMember
    began, cpu = time.monotonic(), time.process_time()
    for rank in range(first, last):
        # A TCPStore asks for the name of each address: only this one has one on every machine.
        sock = connect(port, f"127.0.1.{1 + rank % 200}" if way == "allaboard" else "127.0.0.1")
        members[sock.fileno()] = kind(sock, rank, size)
        poll.register(sock.fileno(), select.EPOLLOUT)
    arrived = time.monotonic()
    left = len(members)
    while left:
        for fd, what in poll.poll(60) or sys.exit(f"{left} members wait for ever"):
            one = members[fd]
            if what & select.EPOLLOUT:
                one.sock.send(one.begin())
                poll.modify(fd, select.EPOLLIN)
                continue
            data = one.sock.recv(1 << 16)
            if not data:
                sys.exit(f"member {one.rank} was cut off in stage {one.stage}")
            out, done = one.heard(data)
            if out:
                one.sock.send(out)
            if done:
                poll.unregister(fd)
                left -= 1
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
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(come(way, port, size, first, last)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
