"""The stream of an admitted agent: what is sent to it, and how far its clocks are from ours."""

from __future__ import annotations

import time

import msgspec

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.member_budget import MemberBudget
from allaboard.cluster.transport.sealed_records import RecordSealer
from allaboard.cluster.transport.stream import Stream
from allaboard.cluster.transport.wire import Hello, Message

ClockQuestion = tuple[float, float]
"""When a caller was asked for its clock: by our wall clock, and by CLOCK_MONOTONIC, which never jumps."""
CLOCK_WINDOW_S = 30.0
"""Seconds of a window; the least distance of two clocks is that of the current window and of the one
before."""


class MemberConnection:
    """The stream of an admitted agent.

    ``clock_offset`` (s) is added to its monotonic clock to get ours. It is an upper bound, too large by the
    transit time, that improves with every message. Only messages of the last minute count: the monotonic
    clock of a host that was suspended stood still meanwhile.
    """

    __slots__ = (
        "_sealer",
        "_window_minimum",
        "_window_started_at",
        "budget",
        "clock_offset",
        "hello",
        "number",
        "peer_address",
        "stream",
        "wall_offset",
    )

    def __init__(
        self,
        stream: Stream,
        hello: Hello,
        number: int,
        peer_address: str,
        clock_question: ClockQuestion,
        sealer: RecordSealer | None = None,
    ) -> None:
        self.stream = stream
        self._sealer = sealer
        self.budget = MemberBudget(time.monotonic())
        # Kept as long as the connection: nonce and proof are needed no more
        self.hello = msgspec.structs.replace(hello, nonce="", proof="")
        self.number = number
        self._window_started_at = time.monotonic()
        self.clock_offset = self._window_minimum = self._window_started_at - hello.mono
        self.wall_offset = least_wall_offset(
            hello.wall, clock_question[0], clock_question[0] + time.monotonic() - clock_question[1]
        )
        self.peer_address = peer_address

    def send_message(self, message: Message) -> None:
        """Send a message without waiting; a member that does not read is cut off once too much is unsent."""
        self.send_frame(wire.encode_frame(message))

    def send_frame(self, frame: bytes) -> None:
        """Send a frame that was encoded once for several members."""
        self.stream.write(frame if self._sealer is None else self._sealer.seal(frame))
        # Buffering without bound for one stuck member would in the end take the leader down with it.
        if self.stream.unsent_bytes > 4 * wire.MAX_MEMBER_FRAME_BYTES:
            self.stream.abort()

    def update_offset(self, mono: float) -> None:
        """Take note of the sender's monotonic clock (s) in a message that has just arrived."""
        now = time.monotonic()
        # Our clock minus theirs plus the transit time, which is never negative: the smallest value is the
        # best.
        offset = now - mono
        if now - self._window_started_at < CLOCK_WINDOW_S:
            self._window_minimum = min(self._window_minimum, offset)
            self.clock_offset = min(self.clock_offset, offset)
        else:
            self.clock_offset, self._window_minimum, self._window_started_at = (
                min(self._window_minimum, offset),
                offset,
                now,
            )

    def close(self) -> None:
        """Close the stream once everything is sent."""
        self.stream.close()


def least_wall_offset(their_wall: float, asked_at: float, now: float) -> float:
    """Return by how much a wall clock differs from ours at least (s; negative: it is behind).

    It was read at some time between our question and now, which may be long after on a busy host.
    """
    return max(their_wall - now, 0.0) or min(their_wall - asked_at, 0.0)
