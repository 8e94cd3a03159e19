"""Proofs of the job's secret in a handshake, and the keys of the connection that follows. Pure.

All of them cover the transcript: everything that Challenge and Hello say, both nonces among it, so that
nothing that was said in one handshake is of any worth in another. From the secret and the transcript comes
one key (HMAC-SHA256, RFC 2104), and from it each proof and each direction's key under a label of its own, as
HKDF expands a key (RFC 5869, section 2.3).
"""

from __future__ import annotations

import hmac
import struct
from functools import cache

import msgspec

from allaboard.cluster.transport.wire import Challenge, Hello, Refused, Welcome


class HandshakeKeys:
    """What both sides of one handshake can compute if they know the job's secret."""

    __slots__ = ("_key",)

    def __init__(self, secret: bytes, challenge: Challenge, hello: Hello) -> None:
        keyed = _keyed(secret).copy()
        keyed.update(_transcript(challenge, hello))
        self._key = keyed.digest()

    def caller_proof(self) -> str:
        """Return what shows that the caller knows the secret, and that all in its Hello is its own."""
        return self._expand(b"caller", "sha256").hex()

    def listener_proof(self, answer: Welcome | Refused) -> str:
        """Return what shows that the listener knows the secret, and that this answer is its own."""
        claims = join_fields(type(answer).__name__, *_claims(answer))
        return self._expand(b"listener" + claims, "sha256").hex()

    def direction_keys(self) -> tuple[bytes, bytes]:
        """Return the key of what the caller sends after its Hello, and that of what the listener sends after
        its Welcome."""
        keys = self._expand(b"records", "sha512")
        return keys[:32], keys[32:]

    def _expand(self, label: bytes, digest: str) -> bytes:
        return hmac.new(self._key, label, digest).digest()


def _transcript(challenge: Challenge, hello: Hello) -> bytes:
    return join_fields(*msgspec.structs.astuple(challenge), *_claims(hello))


def _claims(message: Hello | Welcome | Refused) -> tuple[object, ...]:
    """Return all that a message says but its proof."""
    at = type(message).__struct_fields__.index("proof")
    values = msgspec.structs.astuple(message)
    return values[:at] + values[at + 1 :]


def join_fields(*values: object) -> bytes:
    """Return the values as text with the lengths of all of them before: other values give other bytes."""
    # repr of a float is the shortest text that reads as the same number, on every host.
    parts = [str(value).encode() for value in values]
    return struct.pack(f">{len(parts)}I", *map(len, parts)) + b"".join(parts)


def make_proof(secret: bytes, side: str, challenge: str, answer: str, subject: str) -> str:
    """Return the HMAC-SHA256 over both nonces of a feed's login and the job's id.

    ``side`` ("caller" or "listener") keeps one side's proof from being sent back as the other's.
    """
    keyed = _keyed(secret).copy()
    keyed.update("\0".join((side, challenge, answer, subject)).encode())
    return keyed.hexdigest()


def proofs_match(shown: str, expected: str) -> bool:
    """Compare two proofs in constant time."""
    return hmac.compare_digest(shown.encode(), expected.encode())


@cache
def _keyed(secret: bytes) -> hmac.HMAC:
    """Return the part of an HMAC that is the same for all callers: with thousands of them it is worth
    keeping."""
    return hmac.new(secret, digestmod="sha256")
