"""Runs a drill: a real job under `allaboard run`, the fault put in, and what was said of it judged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from functools import cache
from pathlib import Path

import msgspec

from allaboard.blackbox.reader import OpenBox
from allaboard.contracts import USUAL, Drill
from allaboard.drills import cpu_limit, families
from allaboard.facts import Finding, Stage
from allaboard.launch.script_interpreter import script_interpreter
from allaboard.plugins import tables_by_name

JOBS = Path(__file__).parent / "jobs"
AT_STEP = 60
LIMIT = 120.0
"""Seconds that a drill may take; where the fault is put in from outside, its start, and what follows it."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a drill."""

    drill: str
    """Name of the drill."""
    rule: str
    """Rule that must name the fault."""
    found: bool
    """True if that rule reported it."""
    right_rank: bool
    """True if the finding names the right ranks."""
    seconds: float | None
    """Seconds from the fault to its finding; None if it was not found."""
    exit_code: int
    """Exit code of `allaboard run`; -1 if it did not end in time."""
    right_exit: bool
    """True if that is one of the allowed exit codes."""
    others: tuple[Finding, ...]
    """Findings that nothing explains; notes on the script's text are left out."""
    findings: tuple[Finding, ...]
    """All findings of the run."""
    output: str
    """Everything that the run printed."""
    left_behind: bool = False
    """True if the black boxes are still there."""

    @property
    def passed(self) -> bool:
        return (
            self.found
            and self.right_rank
            and self.right_exit
            and not self.others
            and not self.left_behind
        )


@cache
def all_drills() -> dict[str, Drill]:
    """Return every drill by its name. Raises TypeError if a family does not load."""
    return tables_by_name(families, "DRILLS", Drill)


def lacks(drill: Drill) -> str:
    """Why this machine cannot stage it; "" where it can."""
    if "cgroup-memory" in drill.needs and _memory_group() is None:
        return "needs root and a memory control group to make a child of"
    if "cgroup-cpu" in drill.needs and not cpu_limit.possible():
        return "needs root and a control group with a limit of CPU"
    return ""


def may_be_warm(drill: Drill) -> bool:
    """Return True if its workers can be forked from one process that imports (`run --warm`)."""
    return not drill.command and not {"--ps", "--standby"} & set(drill.options)


def rehearse(
    name: str, at_step: int = AT_STEP, workers: int = USUAL, is_warm: bool = False
) -> Rehearsal:
    """Stages one drill; the fault begins at this step of the guilty rank, among so many workers if the drill
    does not need a number of its own. ``is_warm``: they are started with `--warm`."""
    drill = all_drills()[name]
    drill = msgspec.structs.replace(drill, workers=drill.workers or workers)
    with tempfile.TemporaryDirectory(prefix="allaboard-drill-") as folder:
        return _Stage(name, drill, Path(folder), at_step, is_warm).run()


class _Stage:
    def __init__(self, name: str, drill: Drill, folder: Path, at_step: int, is_warm: bool) -> None:
        self.is_warm = is_warm
        self.name = name
        self.drill = drill
        self.folder = folder
        self.at_step = at_step
        self.mark = folder / "mark"
        self.journal = folder / "run" / "journal.jsonl"
        self.deadline = time.monotonic() + LIMIT
        self.fault_at: float | None = None

    def run(self) -> Rehearsal:
        group = _memory_group() if "cgroup-memory" in self.drill.needs else None
        output = self.folder / "output"
        with output.open("wb") as sink:
            process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        guilty = 0
        try:
            if self.drill.outside is not None:
                guilty = self._trained(process)
                self.fault_at = time.time()
                self.drill.outside(guilty)
                self.deadline = time.monotonic() + LIMIT  # a busy machine may start for as long
            elif group is not None:
                _confine(group, self._trained(process, steps=1))
            self._found(process)
            if self.fault_at is None and self.mark.exists():
                self.fault_at = float(self.mark.read_text())
            if not self.drill.ends:
                process.send_signal(signal.SIGTERM)
            code = process.wait(max(1.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if self.drill.heal is not None and guilty and _lives(guilty):
                self.drill.heal(guilty)
            if process.poll() is None:
                process.terminate()
                process.wait()
            if group is not None:
                _remove(group)
            if "cgroup-cpu" in self.drill.needs:
                cpu_limit.sweep()
        return self._judge(code, output.read_text(errors="replace"))

    def _command(self) -> list[str]:
        drill = self.drill
        script = [str(JOBS / drill.script)]
        command = [script_interpreter() if word == "{python}" else word for word in drill.command]
        words = ["--", *command, *script] if command else script
        if drill.inside:
            words += ["--fault", drill.fault or self.name, "--guilty", str(drill.guilty)]
            words += ["--at-step", str(self.at_step), "--mark", str(self.mark)]
        run = [sys.executable, "-m", "allaboard", "run", "-n", str(drill.workers), "--grace", "2"]
        run += ["--run-dir", str(self.folder / "run"), *drill.options]
        run += ["--warm"] if self.is_warm else []
        return [*run, *words, *drill.arguments]

    def _trained(self, process: subprocess.Popen[bytes], steps: int = 0) -> int:
        """The guilty process, once it has done so many steps."""
        drill = self.drill
        box: OpenBox | None = None
        while time.monotonic() < self.deadline and process.poll() is None:
            if box is None:
                box = self._box(drill.guilty if drill.trains < 0 else drill.trains)
            elif box.read_snapshot().step >= (steps or self.at_step):
                guilty = box if drill.trains < 0 else self._box(drill.guilty)
                if guilty is not None:
                    return guilty.pid
            time.sleep(0.02)
        raise subprocess.TimeoutExpired(process.args, LIMIT)

    def _box(self, worker: int) -> OpenBox | None:
        for entry in self._entries():
            if entry.get("kind") == "worker" and entry.get("worker") == worker:
                path = Path(str(entry["boxes"])) / f"{entry['pid']}.box"
                return OpenBox(path) if path.exists() else None
        return None

    def _found(self, process: subprocess.Popen[bytes]) -> None:
        while time.monotonic() < self.deadline and process.poll() is None:
            if any(self._is_it(f) for f in self._findings()):
                return
            time.sleep(0.1)

    def _is_it(self, finding: Finding) -> bool:
        return finding.rule == self.drill.expects and (
            finding.over is not None or not self.drill.over
        )

    def _entries(self) -> list[dict[str, object]]:
        if not self.journal.exists():
            return []
        whole = self.journal.read_bytes().rpartition(b"\n")[0].splitlines()
        return [msgspec.json.decode(line) for line in whole]

    def _again(self) -> tuple[int, int]:
        """Return how many times all workers, and how many times a task alone, were started again."""
        try:
            report = msgspec.json.decode((self.folder / "run" / "report.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return 0, 0
        return report["restarts"], len(report["returns"])

    def _findings(self) -> list[Finding]:
        entries = [e["finding"] for e in self._entries() if e.get("kind") == "finding"]
        return [msgspec.convert(e, Finding) for e in entries]

    def _judge(self, code: int, output: str) -> Rehearsal:
        drill = self.drill
        findings = self._findings()
        named = [f for f in findings if f.rule == drill.expects]
        blamed = {w.rank for f in named for w in f.who}
        wanted = set(drill.blames or (drill.guilty,))
        seconds = None
        if self.fault_at is None and self.mark.exists():
            self.fault_at = float(self.mark.read_text())
        if named and self.fault_at is not None:
            seconds = datetime.fromisoformat(named[0].at).timestamp() - self.fault_at
        return Rehearsal(
            drill=self.name,
            rule=drill.expects,
            found=any(self._is_it(f) for f in findings),
            right_rank=bool(named) and (blamed == wanted or drill.guilty < 0),
            seconds=seconds,
            exit_code=code,
            right_exit=not drill.ends
            or (code in drill.exit_codes and self._again() == (drill.restarts, drill.returns)),
            others=tuple(
                f
                for f in findings
                if f.rule not in (drill.expects, *drill.allowed) and f.stage is not Stage.CONFIG
            ),
            findings=tuple(findings),
            output=output,
            left_behind=any(
                Path(str(e["boxes"])).exists() for e in self._entries() if "boxes" in e
            ),
        )


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _memory_group() -> Path | None:
    """A new memory control group below the root (version 1) for one process; None where the kernel
    or our rights do not allow one."""
    base = Path("/sys/fs/cgroup/memory")
    group = base / f"allaboard-drill-{os.getpid()}"
    try:
        group.mkdir(exist_ok=True)
        return group if (group / "memory.limit_in_bytes").exists() else None
    except OSError:
        return None


def _confine(group: Path, pid: int) -> None:
    used = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    (group / "memory.limit_in_bytes").write_text(str(used + (256 << 20)))
    (group / "cgroup.procs").write_text(str(pid))


def _remove(group: Path) -> None:
    for _ in range(50):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)
