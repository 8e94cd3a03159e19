"""The limit that an exception says is reached goes along with it."""

from __future__ import annotations

import json
import resource

import pytest

from allaboard.probe import text_records


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (OSError(24, "Too many open files", "x"), resource.RLIMIT_NOFILE),
        (RuntimeError("can't start new thread"), resource.RLIMIT_NPROC),
        (RuntimeError("</torch_1_2> in read-write mode: Too many open files (24)"), resource.RLIMIT_NOFILE),
        (OSError(28, "No space left on device", "x"), None),
    ],
)  # fmt: skip
def test_what_is_recorded_of_an_exception(error: Exception, limit: int | None) -> None:
    told = json.loads(text_records.exception(type(error), error, None, 1.0))
    assert told["limit"] == (0 if limit is None else resource.getrlimit(limit)[0])


def test_the_exceptions_before_it_go_along() -> None:
    told = json.loads(text_records.exception(TimeoutError, _chained(), None, 1.0))
    assert [(c["type"], c["message"], c["is_cause"]) for c in told["chain"]] == [
        ("KeyError", "'b'", True),
        ("ValueError", "a", False),
    ]
    assert [f[2] for f in told["chain"][0]["frames"]] == ["_chained"]


def test_a_chain_that_has_no_room_is_cut_before_the_frames() -> None:
    error: BaseException = ValueError("x")
    for _ in range(9):
        error.__cause__, error = None, _after(error)
    told = json.loads(text_records.exception(type(error), error, None, 1.0))
    assert len(told["chain"]) == text_records.MAX_CHAIN
    error.args = ("\u20ac" * 2000,)
    told = json.loads(text_records.exception(type(error), error, error.__traceback__, 1.0))
    assert len(told["chain"]) == 1


def test_a_chain_that_is_a_ring_ends() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    told = json.loads(text_records.exception(ValueError, one, None, 1.0))
    assert [c["message"] for c in told["chain"]] == ["2"]


def _after(error: BaseException) -> BaseException:
    later = RuntimeError("\u20ac" * 999)
    later.__context__ = error
    return later


def _chained() -> BaseException:
    try:
        try:
            raise ValueError("a")
        except ValueError:
            raise KeyError("b")  # noqa: B904  # it is not the cause
    except KeyError as error:
        later = TimeoutError("c")
        later.__cause__ = error
        return later
