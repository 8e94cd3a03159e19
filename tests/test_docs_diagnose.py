"""The transcripts of docs/diagnose.md are what is printed today."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "diagnose.md").read_text()
SHOWN = re.findall(r"```console\n\$ (allaboard diagnose tests/[^\n]+)\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_transcripts() -> None:
    assert len(SHOWN) >= 4


@pytest.mark.parametrize(("typed", "printed"), SHOWN, ids=[t for t, _ in SHOWN])
def test_a_transcript_is_what_is_printed(typed: str, printed: str) -> None:
    command = [sys.executable, "-m", "allaboard", *shlex.split(typed)[1:]]
    # Without COLUMNS: wrapped as in a pipe.
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == printed
    assert done.returncode == 1 and done.stderr == ""
