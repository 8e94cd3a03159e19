"""Rows that a worker's output shows, from bytes as tqdm, Keras and rich write them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.live import Live

from allaboard.agent.output.stream_rows import MAX_PIECE_BYTES, StreamRows


def finished(stream: StreamRows, *chunks: bytes) -> list[bytes]:
    return [row.removesuffix(b"\n") for chunk in chunks for row in stream.feed(chunk)]


def everything(chunks: Iterable[bytes]) -> list[bytes]:
    stream = StreamRows()
    return finished(stream, *chunks) + [row.removesuffix(b"\n") for row in stream.end()]


def test_lines_are_handed_on_as_they_are() -> None:
    stream = StreamRows()
    assert stream.feed(b"one\n\x1b[31mtwo\x1b[0m\nthr") == [b"one\n", b"\x1b[31mtwo\x1b[0m\n"]
    assert stream.live_rows == (b"thr",)
    assert stream.feed(b"ee\n") == [b"three\n"]
    assert stream.end() == []


def test_a_bar_keeps_its_last_state() -> None:
    stream = StreamRows()
    assert finished(stream, b"\r 10%|#", b"\r 20%|##", b"\r 30%") == []
    assert stream.live_rows == (b" 30%",)
    assert finished(stream, b"\r100%|##########\nnext\n") == [b"100%|##########", b"next"]


def test_a_bar_that_ends_in_carriage_return_stays_visible() -> None:
    stream = StreamRows()
    assert finished(stream, b"step 1\r", b"step 2\r") == []
    assert stream.live_rows == (b"step 2",)
    assert finished(stream, b"\n") == [b"step 2"]


def test_windows_line_ends_are_line_ends() -> None:
    assert everything([b"a\r\nb\r", b"\nc"]) == [b"a", b"b", b"c"]


def test_backspaces_take_characters_away() -> None:
    stream = StreamRows()
    stream.feed("fünf|".encode() + b"\x08/\x08-")
    assert stream.live_rows == ("fünf-".encode(),)
    stream.feed(b"\x08" * 40 + b"\rnew")
    assert stream.live_rows == (b"new",)


def test_a_sequence_cut_in_two_is_one() -> None:
    stream = StreamRows()
    stream.feed(b"\rbar 1\x1b")
    stream.feed(b"[")
    stream.feed(b"2K\rbar 2")
    assert stream.live_rows == (b"bar 2",)


def test_nested_tqdm_bars_are_two_rows() -> None:
    tqdm = pytest.importorskip("tqdm")
    text = io.StringIO()
    with tqdm.tqdm(total=3, desc="outer", file=text, mininterval=0) as outer:
        for _ in range(3):
            with tqdm.tqdm(total=50, desc="inner", file=text, mininterval=0, leave=False) as inner:
                for _ in range(50):
                    inner.update()
            outer.update()
    lines = everything([text.getvalue().encode()])
    assert len(lines) <= 4, lines
    assert any(line.startswith(b"outer: 100%") for line in lines)


def test_richs_live_display_is_its_last_frame() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=60, highlight=False)
    with Live("first\nframe", console=console, auto_refresh=False) as live:
        for i in range(30):
            live.update(f"epoch 1\nstep {i}\nloss {i}", refresh=True)
    lines = everything([text.getvalue().encode()])
    assert [line for line in lines if line.startswith(b"step")] == [b"step 29"]


def test_lines_after_a_live_display_are_not_held_for_long() -> None:
    stream = StreamRows()
    stream.feed(b"a\nb\x1b[A\rc\n")
    lines = finished(stream, *(b"line %d\n" % i for i in range(100)))
    assert lines[-1] == b"line 99"
    assert stream.live_rows == (b"",)


def test_a_very_long_line_comes_in_pieces() -> None:
    stream = StreamRows()
    rows = stream.feed(b"x" * (2 * MAX_PIECE_BYTES + 5))
    assert rows == [b"x" * MAX_PIECE_BYTES] * 2
    assert stream.feed(b"\n") == [b"xxxxx\n"]


def test_absurd_movements_do_no_harm() -> None:
    stream = StreamRows()
    stream.feed(b"\x1b[999999999A\x1b[99999B\x1b[?25l\x1b[J\x1b[;;;K\x1b[9G" + b"\n" * 500)
    assert len(stream.live_rows) <= 17
    assert sys.getsizeof(stream.live_rows) < 4096


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\x08", b"\x1b[A", b"\x1b[2K", b"\x1b[32m"])),
    st.integers(1, 5),
)  # fmt: skip
def test_how_the_bytes_are_cut_does_not_matter(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    assert everything([data]) == everything([data[i : i + size] for i in range(0, len(data), size)])


@given(st.binary())
def test_any_bytes_are_survived(data: bytes) -> None:
    everything([data])
