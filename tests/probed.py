"""Real interpreters with the probe in them, started as the reaper starts them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from allaboard import probe
from allaboard.blackbox.reader import OpenBox
from allaboard.blackbox.snapshot import BoxReading

START = Path(probe.__file__).parent / "start"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
LIMIT = 60
"""Seconds for a program of these tests on a busy machine."""


def python(version: str) -> str:
    """An interpreter of that version; skips the test where there is none."""
    path = _found(version)
    if path:
        return path
    if version == "3.11" and os.environ.get("CI") == "true":
        pytest.fail("CI has no Python 3.11")
    pytest.skip(f"not on this machine: Python {version}")


@cache
def _found(version: str) -> str:
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    found = [shutil.which(f"python{version}") or ""]
    found += map(str, Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    for path in filter(None, found):
        told = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if told.stdout.strip() == version:
            return path
    return ""


@dataclass
class Program:
    """One program under the probe. It and its children speak by their standard streams."""

    folder: Path
    interpreter: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def boxes(self) -> Path:
        return self.folder / "boxes"

    def start(self, code: str, before: str = "", **options: Any) -> subprocess.Popen[str]:
        """Starts a script of this text, whose process id is known to the probe as a worker's.
        ``before`` is shell that runs first."""
        self.boxes.mkdir(exist_ok=True)
        script = self.folder / "script.py"
        script.write_text(code)
        path = os.pathsep.join((str(START), str(self.folder)))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        environment |= {"ALLABOARD_BOX": str(self.boxes), "PYTHONPATH": path} | self.environment
        shell = f'{before}\nexport ALLABOARD_PID=$$; exec "$0" "$@"'
        process = subprocess.Popen(
            ["/bin/sh", "-c", shell, self.interpreter, str(script)],
            env=environment,
            text=True,
            cwd=options.pop("cwd", self.folder),
            stdin=subprocess.PIPE,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            **options,
        )
        self.started.append(process)
        return process

    def run(self, code: str, **options: Any) -> Ended:
        """Starts it and waits for its end."""
        process = self.start(code, **options)
        out, err = process.communicate(timeout=LIMIT)
        return Ended(process.pid, process.returncode, out or "", err)

    def read(self, pid: int) -> BoxReading:
        """What its black box says now."""
        return self.box(pid).read_snapshot()

    def box(self, pid: int) -> OpenBox:
        return OpenBox(self.boxes / f"{pid}.box")

    def members(self) -> list[int]:
        """The process ids that have a black box."""
        return sorted(int(p.stem) for p in self.boxes.glob("*.box"))

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


@dataclass
class Ended:
    """How a program ended."""

    pid: int
    code: int
    out: str
    err: str


def fake_torch(folder: Path, init: str = "return None") -> None:
    """A torch with nothing in it but what the probe hooks; ``init`` is init_process_group's body."""
    package = folder / "torch" / "distributed"
    package.mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("__version__ = '2.99'\n")
    (package / "__init__.py").write_text("from .distributed_c10d import *\n")
    (package / "distributed_c10d.py").write_text(
        "__all__ = ['init_process_group', 'all_reduce']\n"
        f"def init_process_group(backend=None, init_method=None, **rest):\n    {init}\n"
        "def all_reduce(tensor):\n"
        "    return tensor() if callable(tensor) else tensor\n"
        "def get_rank():\n    return 1\n"
        "class Group:\n    group_name = '0'\n"
        "class Tensor:\n    shape, dtype, numel = (3, 4), 'torch.float32', lambda self: 12\n"
        "class _World:\n    default_pg = Group()\n    pg_group_ranks = {default_pg: {0: 0, 1: 1}}\n"
        "_world = _World()\n"
    )


RENDEZVOUS = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999"}
"""What torch's env:// reads."""
