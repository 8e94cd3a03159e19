"""Records that carry a proof: what agents send each other after the handshake of a job with a secret. Pure.

A record is four bytes of length, big endian, the proof, and so many bytes of messages. The proof is
HMAC-SHA256 under the key of this connection and direction, cut to 16 bytes (RFC 2104, section 5), over the
number of the record and its bytes. Whoever stands between two hosts can delay a connection or cut it, but
not add, change, repeat or reorder anything.
"""

from __future__ import annotations

import hmac
import struct

from allaboard.cluster.transport.wire import LENGTH_PREFIX
from allaboard.errors import AllaboardError

PROOF_BYTES = 16
"""Bytes of a proof: 128 bits, as of the tags of TLS."""
MAX_RECORD_BYTES = 1 << 16
"""Largest record without its length and proof: no more is kept of what has not proved anything."""
_NUMBER = struct.Struct(">Q")
_HEADER_BYTES = LENGTH_PREFIX.size + PROOF_BYTES


class ForgedMessageError(AllaboardError):
    """Received bytes do not carry the job's proof: something between the two hosts changes what is sent."""

    def __init__(self) -> None:
        super().__init__("it did not carry the job's proof")


class RecordSealer:
    """Makes the records of one direction of a connection."""

    __slots__ = ("_key", "_number")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def seal(self, data: bytes) -> bytes:
        """Return the data as records, to be sent in this order; b"" for none."""
        if len(data) <= MAX_RECORD_BYTES:
            return self._seal_record(data) if data else b""
        starts = range(0, len(data), MAX_RECORD_BYTES)
        return b"".join([self._seal_record(data[s : s + MAX_RECORD_BYTES]) for s in starts])

    def _seal_record(self, data: bytes) -> bytes:
        proof = _make_proof(self._key, self._number, data)
        self._number += 1
        return LENGTH_PREFIX.pack(len(data)) + proof + data


class RecordOpener:
    """Takes the records of one direction of a connection."""

    __slots__ = ("_key", "_number", "_received")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0
        self._received = b""

    def open(self, data: bytes) -> bytes:
        """Return the bytes of all records that are complete with this data.

        Raises ForgedMessageError; then nothing more may be taken from this connection.
        """
        received = self._received + data if self._received else data
        opened: list[bytes] = []
        start = 0
        while len(received) - start >= _HEADER_BYTES:
            (length,) = LENGTH_PREFIX.unpack_from(received, start)
            # The length is not proven yet. One that is too large would let a forger make us wait, and keep
            # what comes, for as long as it likes.
            if not 1 <= length <= MAX_RECORD_BYTES:
                raise ForgedMessageError
            begin = start + _HEADER_BYTES
            if len(received) < begin + length:
                break
            shown = received[start + LENGTH_PREFIX.size : begin]
            record = received[begin : begin + length]
            # In constant time: how long a comparison took would tell how much of a guess is right.
            if not hmac.compare_digest(shown, _make_proof(self._key, self._number, record)):
                raise ForgedMessageError
            self._number += 1
            opened.append(record)
            start = begin + length
        self._received = received[start:]
        return opened[0] if len(opened) == 1 else b"".join(opened)


def _make_proof(key: bytes, number: int, data: bytes) -> bytes:
    # Not `hmac.digest`, which takes twice as long with OpenSSL 3: it looks the algorithm up each time.
    return hmac.new(key, _NUMBER.pack(number) + data, "sha256").digest()[:PROOF_BYTES]
