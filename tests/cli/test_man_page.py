"""The manual page: made from the parsers, fresh, and free of errors where groff is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from allaboard.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "man" / "allaboard.1"


def test_it_is_fresh() -> None:
    words = [sys.executable, "scripts/man_page.py", "--check", "docs/man/allaboard.1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_has_every_command_and_is_installed() -> None:
    text = PAGE.read_text()
    assert all(f".SS {name}\n" in text for name in COMMANDS)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    installed = wheel["wheel"]["shared-data"]
    assert installed == {"docs/man/allaboard.1": "share/man/man1/allaboard.1"}


def test_groff_has_nothing_to_say() -> None:
    if shutil.which("groff") is None:
        return
    words = ["groff", "-man", "-Tutf8", "-ww", "-z", str(PAGE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
