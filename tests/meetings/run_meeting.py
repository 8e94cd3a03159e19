"""Stages one meeting over a bed, with an agent for each rank, and measures how long they held it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Phase
from meetings.ways import PORT, PUBLIC, WAYS, Place, Setting
from multihost_drills.run_host_drill import CLUSTER
from testbed import Bed, Process
from testbed.nat import translate

JOB = Path(__file__).parent / "jobs" / "meets.py"
LIMIT_S = 90.0
POLL_S = 0.02


class Meeting(NamedTuple):
    """How it went."""

    codes: tuple[int, ...]
    """Exit codes of the agents; -1 for one that had to be ended."""
    held_s: float
    """Seconds at the gate from the arrival of the last rank, the longest of all ranks."""
    findings: tuple[str, ...]
    """Codes of the rules that reported something but about the script's text."""
    output: str

    @property
    def is_healthy(self) -> bool:
        """Return True if both ranks trained, and nothing was reported."""
        return (
            all(code == 0 for code in self.codes)
            and self.output.count("all added up") >= len(self.codes)
            and not self.findings
        )


class _Agent:
    def __init__(self, bed: Bed, host: str, process: Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.arrivals: dict[str, float] = {}
        """When each process came to its init, by the name of its black box."""
        self.entries_to_init: dict[str, float] = {}
        """When each was let in."""
        self._bed, self._host = bed, host
        self._boxes: dict[str, OpenBox] = {}

    def observe(self, now: float) -> None:
        """Note which processes came to their init, and which were let in."""
        self._open_boxes()
        for name, box in self._boxes.items():
            with contextlib.suppress(OSError, ValueError):
                reading = box.read_snapshot()
                if reading.declared is None:
                    continue
                if reading.phase >= Phase.ARRIVED:
                    self.arrivals.setdefault(name, now)
                if reading.phase >= Phase.JOINING:
                    self.entries_to_init.setdefault(name, now)

    def _open_boxes(self) -> None:
        folders = {str(e["boxes"]) for e in self.journal() if e.get("kind") == "worker"}
        for folder in folders:
            for path in self._bed.path(self._host, folder).glob("*.box"):
                if path.name not in self._boxes:
                    with contextlib.suppress(OSError, ValueError):
                        self._boxes[path.name] = OpenBox(path)

    def journal(self) -> list[dict[str, object]]:
        """Return the entries of its journal."""
        path = self.folder / "journal.jsonl"
        text = path.read_bytes() if path.exists() else b""
        return [msgspec.json.decode(line) for line in text.rpartition(b"\n")[0].splitlines()]


def stage(
    name: str,
    place: Place,
    options: tuple[str, ...] = (),
    pause_s: float = 0.0,
    order: tuple[int, ...] = (0, 1),
) -> Meeting:
    """Stage this way at this place. Raises CannotMake where no bed can be made.

    ``pause_s`` is the time between the two starts.
    """
    with Bed(place.hosts, lifetime=LIMIT_S + 60) as bed:
        if place.is_translated:
            for host, public in zip(bed.hosts, PUBLIC, strict=True):
                ports = (
                    {PORT: place.listens_at} if host == "h0" and place.listens_at != PORT else {}
                )
                translate(bed, public, host, ports)
        agents: list[_Agent] = []
        for rank in order:
            setting = Setting(rank, place, str(bed.folder / "shared"))
            agents.append(_start(bed, name, setting, options))
            _watch(agents, pause_s if rank != order[-1] else LIMIT_S)
        codes = tuple(_end(a.process) for a in agents)
        return Meeting(
            codes,
            _longest_hold(agents),
            tuple(rule for a in agents for rule in _findings(a)),
            "\n".join(f"--- {a.process.text()}" for a in agents),
        )


def _longest_hold(agents: list[_Agent]) -> float:
    arrivals = [at for a in agents for at in a.arrivals.values()]
    let_in = [at for a in agents for at in a.entries_to_init.values()]
    is_seen = all(a.arrivals for a in agents) and len(arrivals) == len(let_in)
    return max(let_in) - max(arrivals) if is_seen else LIMIT_S


def _start(bed: Bed, name: str, setting: Setting, options: tuple[str, ...]) -> _Agent:
    way = WAYS[name]
    folder = bed.folder / f"run-{setting.rank}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
    environment |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "JAX_PLATFORMS": "cpu"}
    environment |= way.environment(setting)
    host = bed.hosts[setting.rank % len(bed.hosts)]
    words = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(folder), *options]
    words += [str(JOB), way.framework, json.dumps(way.script(setting))]
    return _Agent(bed, host, bed.start(host, words, environment), folder)


def _watch(agents: list[_Agent], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(a.process.poll() is None for a in agents):
        now = time.monotonic()
        for agent in agents:
            agent.observe(now)
        time.sleep(POLL_S)


def _end(process: Process) -> int:
    code = process.poll()
    if code is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        return -1
    return code


def _findings(agent: _Agent) -> list[str]:
    findings = [e["finding"] for e in agent.journal() if e.get("kind") == "finding"]
    return [str(f["rule"]) for f in findings if isinstance(f, dict) and f.get("stage") != "config"]
