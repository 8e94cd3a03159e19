"""What a chief does to give the servers of other hosts the values of a snapshot, on real TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "jobs/fed_values.py"


@pytest.mark.zoo
@pytest.mark.timeout(120)
def test_variables_of_every_kind_begin_with_given_values(tmp_path: Path) -> None:
    command = [sys.executable, str(JOB), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "all as they were" in done.stdout
