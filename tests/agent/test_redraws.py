"""How often a worker has drawn its progress bar anew."""

from __future__ import annotations

import pytest

from allaboard.agent.output.stream_rows import StreamRows


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        pytest.param((b"\r10%|#   |", b"\r20%|##  |", b"\r30%|### |"), 2, id="a bar"),
        pytest.param((b"\r10%|#   |", b"\r10%|#   |"), 0, id="a bar that stands still"),
        pytest.param((b"10%|#   |\r", b"20%|##  |\r"), 1, id="the cursor goes back behind it"),
        pytest.param((b"10%|#   |\x1b[1G", b"20%|##  |\x1b[1G"), 1, id="by a sequence"),
        pytest.param((b"step 1\n", b"step 2\n", b"step 3\n"), 0, id="lines"),
        pytest.param((b"step 1\r\n", b"step 2\r\n"), 0, id="lines of Windows"),
        pytest.param((b"\r10%|#   |", b"\r          \r"), 0, id="a bar that is wiped out"),
    ],
)
def test_redraws_are_counted(pieces: tuple[bytes, ...], count: int) -> None:
    rows = StreamRows()
    for piece in pieces:
        rows.feed(piece)
    assert rows.redraws == count
