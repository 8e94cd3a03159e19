"""Who is away while it trains: what the kernel counts of a stream, and what follows from it."""

from __future__ import annotations

import socket
import struct

from allaboard.cluster.connections.silence_detector import SilenceDetector
from allaboard.cluster.transport.tcp_keepalive import (
    HOST_AWAY_AFTER_S,
    set_keepalive,
    silence_from_tcp_info,
    silence_seconds,
)


def info(*, retransmits: int = 0, probes: int = 0, data: float = 0.0, answer: float = 0.0) -> bytes:
    """A struct tcp_info: bytes, then words of 32 bits; times in seconds."""
    words = [0] * 24
    words[11], words[12] = int(data * 1000), int(answer * 1000)
    return struct.pack("=8B24I", 1, 0, retransmits, probes, 0, 0, 0, 0, *words)


def test_unanswered_questions_make_a_silence() -> None:
    assert silence_from_tcp_info(info(retransmits=7, data=40, answer=31)) == 31
    assert silence_from_tcp_info(info(probes=4, data=40, answer=31)) == 31


def test_a_stream_on_which_nothing_was_asked_is_not_silent() -> None:
    assert silence_from_tcp_info(info(data=900, answer=900)) == 0.0, "this machine was suspended"


def test_who_acknowledges_is_heard_though_its_agent_says_nothing() -> None:
    assert silence_from_tcp_info(info(probes=3, data=900, answer=2)) < HOST_AWAY_AFTER_S
    assert silence_from_tcp_info(b"") == 0.0


def test_a_patient_stream_is_still_asked_and_outlasts_minutes() -> None:
    one, other = socket.socketpair()
    other.close()
    with one, socket.socket() as stream:
        set_keepalive(stream)
        set_keepalive(stream, on=False)
        assert stream.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        every = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        assert every < HOST_AWAY_AFTER_S / 3
        assert every * stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) > 800
        assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 0
        assert silence_seconds(stream) == silence_seconds(one) == 0.0


def test_who_is_away_is_told_once_and_so_is_its_return() -> None:
    hush, seconds = SilenceDetector(), {1: 0.0, 2: 0.0}

    def look(now: float) -> tuple[list[int], list[int]]:
        return hush.find_changes(now, {n: (lambda n=n: seconds[n]) for n in seconds})  # type: ignore[misc]

    assert look(100.0) == ([], [])
    seconds[1] = HOST_AWAY_AFTER_S - 1
    assert look(110.0) == ([], [])
    seconds[1] = HOST_AWAY_AFTER_S + 1
    assert look(120.0) == ([1], [])
    assert hush.silent_since == {1: 120.0 - HOST_AWAY_AFTER_S - 1}
    assert look(130.0) == ([], [])
    seconds[1] = 0.0
    assert look(140.0) == ([], [1])
    assert not hush.silent_since


def test_who_comes_by_another_stream_or_leaves_is_not_away_any_more() -> None:
    hush = SilenceDetector()
    assert hush.find_changes(100.0, {1: lambda: HOST_AWAY_AFTER_S}) == ([1], [])
    assert hush.find_changes(110.0, {}) == ([], [])
    assert not hush.silent_since
