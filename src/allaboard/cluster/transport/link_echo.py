"""The listener's side of the test of a link: echoes a few bytes, then acknowledges blocks.

The caller measures how long the few bytes take, and how fast the blocks get through.
"""

from __future__ import annotations

from collections.abc import Callable

from allaboard.cluster.transport import wire

ECHO_BYTES = 32
"""Bytes that are echoed before the first block."""
MAX_TRIAL_BLOCKS = 64
"""Blocks that the test of a link may send: nobody may keep us busy for ever."""


class LinkEcho:
    """Answers the test of one link; ``write`` sends bytes to the caller."""

    __slots__ = (
        "_block_nbytes",
        "_blocks_left",
        "_has_echoed",
        "_nbytes_left",
        "_write",
        "is_exceeded",
    )

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._has_echoed = False
        self._blocks_left = MAX_TRIAL_BLOCKS
        self._block_nbytes: int | None = None
        """Size of the block that is being received; None between two blocks."""
        self._nbytes_left = 0
        self.is_exceeded = False
        """True once the caller has sent more, or a larger block, than it may."""

    def take_bytes(self, received: bytes) -> bytes:
        """Answer what can be answered, and return the bytes that are incomplete. None of a block is kept."""
        while not self.is_exceeded:
            if self._block_nbytes is not None:
                skipped = min(len(received), self._nbytes_left)
                received = received[skipped:]
                self._nbytes_left -= skipped
                if self._nbytes_left:
                    return received
                self._blocks_left -= 1
                self._write(wire.LENGTH_PREFIX.pack(self._block_nbytes))
                self._block_nbytes = None
            elif not self._has_echoed:
                if len(received) < ECHO_BYTES:
                    return received
                self._write(received[:ECHO_BYTES])
                received = received[ECHO_BYTES:]
                self._has_echoed = True
            elif len(received) < wire.LENGTH_PREFIX.size:
                return received
            else:
                (length,) = wire.LENGTH_PREFIX.unpack_from(received)
                received = received[wire.LENGTH_PREFIX.size :]
                self._block_nbytes = self._nbytes_left = length
                # Bounded in size and number: the test proves no identity beyond the handshake.
                self.is_exceeded = length > wire.MAX_STRANGER_FRAME_BYTES or not self._blocks_left
        return received
