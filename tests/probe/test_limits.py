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
