"""What is noted of a rank that has run out of data under torch's `Join`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allaboard.analysis.performance.stragglers import SHADOWS_NOTE
from allaboard.probe import member
from allaboard.probe.adapters._torch import ddp_backward


class Recorder:
    spoiled = 0

    def spoil(self) -> None:
        self.spoiled += 1


@pytest.fixture
def join() -> Iterator[Any]:
    class Join:
        """As torch's: its end lasts until all have come to theirs."""

        seen: bool | None = None

        def __enter__(self) -> None: ...

        def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
            self.seen = SHADOWS_NOTE in member.here.notes

    ddp_backward.join(Recorder(), Join)  # type: ignore[arg-type]
    yield Join
    member.here.notes.pop(SHADOWS_NOTE, None)


def test_a_rank_that_shadows_the_others_is_noted(
    join: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((0.0, 0.1, 10.0, 15.0, 20.0, 20.1))
    monkeypatch.setattr(ddp_backward, "monotonic", lambda: next(times))
    for noted in (False, True, True):
        one = join()
        with one:
            pass
        assert one.seen
        assert (SHADOWS_NOTE in member.here.notes) is noted


def test_an_exception_in_it_is_no_shadow(join: Any) -> None:
    one = join()
    with pytest.raises(ValueError, match="bad sample"), one:
        raise ValueError("bad sample")
    assert one.seen is False
