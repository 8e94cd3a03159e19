"""Recognises programs by the first bytes that they send. Pure."""

from __future__ import annotations

from allaboard.cluster.transport.tls import alert_text
from allaboard.cluster.transport.wire import (
    BANNER,
    BANNER_TLS,
    GREETING,
    STORE_HELLO,
    STORE_PING_NONCE,
)
from allaboard.facts import Answer

_METHODS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"CONN", b"PATC", b"TRAC")


def sniff_caller(data: bytes) -> str:
    """Return which kind of program connected to us: "ours", or one of facts.KNOCKS."""
    if data == GREETING:
        return "ours"
    if not data:
        return "silent"
    if data.startswith(STORE_HELLO[:5]) and _goes_on_as_store_client(data):
        return "store"
    if data.startswith(b"PRI * HTTP"):
        return "grpc"
    if data[:4] in _METHODS:
        return "http"
    if data[:2] == b"\x16\x03":
        return "tls"
    return "other"


def _goes_on_as_store_client(data: bytes) -> bool:
    """Return True if a first query follows the magic number, as every client of a TCPStore sends it: a ping
    with its nonce, or before PyTorch 2.4 a key with its length (torch/csrc/distributed/c10d)."""
    is_ping = data[5:6] == STORE_HELLO[5:6] and len(data) >= 10
    is_query = 1 <= int.from_bytes(data[5:6]) < STORE_HELLO[5] and data[7:10] == bytes(3)
    return is_ping or is_query


def sniff_listener(data: bytes) -> Answer:
    """Return which kind of program answered our greeting."""
    if data.startswith((BANNER, BANNER_TLS)):
        return Answer.ABOARD
    if data == STORE_PING_NONCE:
        return Answer.STORE
    if len(data) >= 5 and data[:2] == b"\0\0" and data[3:5] == b"\x04\x00":
        return Answer.GRPC  # HTTP/2's first frame is SETTINGS, RFC 9113
    if data.startswith((b"HTTP/", b"<!DO", b"<htm")):
        return Answer.HTTP
    return Answer.OTHER if data else Answer.MUTE


CALLER_NAMES = {
    "store": "a PyTorch process without allaboard",
    "grpc": "a TensorFlow or JAX process without allaboard",
    "http": "a web client",
    "tls": "a TLS client",
    "silent": "somebody who connects and says nothing",
    "other": "a program that speaks another protocol",
    "other-job": "a worker of another job",
    "other-round": "a worker of another round of this job",
    "elsewhere": "a worker that looks for the meeting place here",
    "no-meeting": "a worker that takes another port of this host for the meeting place",
    "no-secret": "a worker without the job's secret",
    "no-tls": "a worker without a certificate of this job",
    "tls-name": "a worker whose certificate has none of the job's names",
    "version": "another version of allaboard",
    "forged": "something that changes what is sent between the hosts",
}
"""Kinds of callers, in words for people."""

DISTRUST_KINDS = ("no-secret", "no-tls", "tls-name", "version")
"""Kinds of refusals that come from the worker itself."""


def describe_missing_tls(reason: str) -> str:
    """Return who connected without TLS, for people; ``reason`` is that of the SSLError, "" if it only hung
    up."""
    if their_alert := alert_text(reason):
        return f"a worker that does not take this host's certificate ({their_alert})"
    return f"{CALLER_NAMES['no-tls']} ({reason or 'it hangs up where TLS begins'})"
