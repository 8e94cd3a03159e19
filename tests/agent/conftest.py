"""A program under the probe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from probed import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    one = Program(tmp_path)
    yield one
    one.close()
