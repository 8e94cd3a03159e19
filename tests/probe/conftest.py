"""A program under the probe, on this interpreter and on every one that can be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from probed import VERSIONS, Program, python


@pytest.fixture(params=VERSIONS)
def any_program(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    one = Program(tmp_path, interpreter=python(request.param))
    yield one
    one.close()
