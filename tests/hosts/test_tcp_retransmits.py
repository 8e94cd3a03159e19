"""Connections that nobody answers, as the kernel counts them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from allaboard.hosts.tcp_retransmits import (
    UnansweredConnections,
    parse_kernel_address,
    retransmissions_in_table,
)


def test_addresses_as_the_kernel_writes_them() -> None:
    assert str(parse_kernel_address("0100007F")) == "127.0.0.1"
    assert str(parse_kernel_address("0000000000000000FFFF00000100007F")) == "127.0.0.1"
    assert parse_kernel_address("00000000000000000000000001000000").is_loopback


def test_a_live_connection_is_none() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        assert UnansweredConnections().find_silences(os.getpid(), 1.0) == ()
    assert UnansweredConnections().find_silences(2**22 + 1, 1.0) == ()


def test_processes_of_one_namespace_share_the_tables_of_a_look() -> None:
    asked = UnansweredConnections()
    namespaces = []
    for pid, now in (
        (os.getpid(), 1.0),
        (os.getppid(), 1.0),
        (2**22 + 1, 1.0),
        (os.getppid(), 2.0),
    ):
        assert asked.find_silences(pid, now) == ()
        namespaces.append(list(asked._by_namespace))
    own = Path("/proc/self/ns/net").stat().st_ino
    assert namespaces == [[own], [own], [own, -(2**22 + 1)], [own]]


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("01 00000E43:00000000 01:00000044 00000003 0 0", [(77, "send", "10.77.0.3:56006", 3)]),
        ("01 00000060:00000000 04:000000AC 00000000 0 4", [(77, "send", "10.77.0.3:56006", 4)]),
        ("02 00000001:00000000 01:00000044 00000002 0 0", [(77, "connect", "10.77.0.3:56006", 2)]),
        ("01 00000060:00000000 04:000000AC 00000000 0 0", []),  # no room there, and it says so
        ("01 00000060:00000000 01:0000003D 00000000 0 0", []),
        ("01 00000000:00000000 02:000000AC 00000000 0 3", []),  # keepalive: nothing is to be sent
    ],
)
def test_what_is_sent_in_vain_by_the_kernel_s_table(
    words: str, found: list[tuple[int, str, str, int]]
) -> None:
    line = f"   0: 01004D0A:733C 03004D0A:DAC6 {words} 77 2 0 100 0 0 10 -1\n"
    assert list(retransmissions_in_table(HEAD + line)) == found
