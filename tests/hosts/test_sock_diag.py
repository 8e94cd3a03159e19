"""What the kernel answers, taken apart: words that it was seen to send, and what it says of errors."""

from __future__ import annotations

import errno
import socket
import struct

from allaboard.hosts import sock_diag

SHORT = struct.pack("=II", 7, 8)


def message(info: bytes, kind: int = sock_diag.INET_DIAG_INFO) -> bytes:
    """``struct inet_diag_msg`` with one attribute before the one that is wanted."""
    head = struct.pack("=BBBB", socket.AF_INET, sock_diag.ESTABLISHED, 0, 0)
    ends = struct.pack("!HH", 29500, 41000)
    ends += socket.inet_aton("10.0.0.1").ljust(16, b"\0") + socket.inet_aton("10.0.0.2").ljust(
        16, b"\0"
    )
    rest = bytes(12) + struct.pack("=IIIII", 0, 11, 22, 0, 4711)
    other = struct.pack("=HHB", 5, 8, 3) + bytes(3)
    return head + ends + rest + other + struct.pack("=HH", 4 + len(info), kind) + info


def test_a_connection_is_told_whole() -> None:
    one = sock_diag._connection(socket.AF_INET, message(SHORT))
    assert one == (4711, ("10.0.0.1", 29500), ("10.0.0.2", 41000), 11, 22, SHORT)


def test_of_a_kernel_that_tells_less_the_rest_is_zero() -> None:
    one = sock_diag._connection(socket.AF_INET, message(SHORT))
    assert one.read_info(struct.Struct("=II"), 0) == (7, 8)
    assert one.read_info(struct.Struct("=Q"), 4) == (0,)


def test_without_the_attribute_there_is_no_info() -> None:
    assert sock_diag._connection(socket.AF_INET, message(SHORT, kind=9)).info == b""


def test_a_refusal_is_told_with_its_reason() -> None:
    error = sock_diag._refused(struct.pack("=i", -errno.EPERM), 0)
    assert error.errno == errno.EPERM
    assert sock_diag._refused(b"", 0).errno == errno.EIO
