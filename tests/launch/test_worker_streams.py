"""Pipes and pseudo-terminals for the workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from allaboard.launch import worker_streams
from allaboard.launch.worker_streams import open_streams, set_size


def test_a_terminal_passes_every_byte_and_has_a_size() -> None:
    streams = open_streams(on_terminal=True)
    try:
        assert streams.is_terminal
        assert os.isatty(streams.worker_out) and os.isatty(streams.worker_err)
        assert os.get_terminal_size(streams.worker_out).columns >= 20
        os.write(streams.worker_out, b"a\n\x03\x04\r\xff")
        assert os.read(streams.out, 100) == b"a\n\x03\x04\r\xff"
        set_size(streams.err, 61, 7)
        assert tuple(os.get_terminal_size(streams.worker_err)) == (61, 7)
        streams.close_worker_ends()
        with pytest.raises(OSError):
            os.read(streams.out, 1)
    finally:
        streams.close_our_ends()
    set_size(streams.out, 80, 24)  # closed: no error


def test_pipes_elsewhere() -> None:
    streams = open_streams(on_terminal=False)
    assert not streams.is_terminal and not os.isatty(streams.worker_out)
    streams.close_worker_ends()
    assert os.read(streams.out, 1) == b""
    streams.close_our_ends()


def test_pipes_where_there_is_no_terminal_left(monkeypatch: pytest.MonkeyPatch) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    opened = []
    real = os.openpty

    def openpty() -> tuple[int, int]:
        if opened:
            raise OSError(28, "No space left on device")
        opened.append(real())
        return opened[0]

    monkeypatch.setattr(worker_streams.os, "openpty", openpty)
    streams = open_streams(on_terminal=True)
    assert not streams.is_terminal
    streams.close_worker_ends()
    streams.close_our_ends()
    assert (
        len(list(Path("/proc/self/fd").iterdir())) == open_before
    )  # the first terminal is closed again
