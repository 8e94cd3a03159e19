"""What torchrun, Flight Recorder, py-spy, faulthandler, NVRx, TraceML and allaboard print of the same faults.

Each fault happens on rank 1 of the drills' PyTorch DDP job (three ranks, gloo, CPU), in the job's own code.
The job runs three times: under torchrun, and while it hangs, py-spy looks at each rank, `allaboard diagnose`
gets torchrun's PID, and at last each rank gets SIGABRT with PYTHONFAULTHANDLER=1; under torchrun with Flight
Recorder switched on and TORCH_DISTRIBUTED_DEBUG=INFO; and under `allaboard run`. Before a run counts, the
job has trained 60 steps and the fault has happened. A hang is looked at some seconds later. What was printed
after the fault is quoted, shortened to the lines that name a rank, an exit or a place; nothing is judged.

Flight Recorder writes its files by itself only after a timeout of NCCL. There is no GPU here, so all that is
measured is whether a file appears; `allaboard diagnose` reads such files where they exist.

NVIDIA's resiliency extension (ft_launcher) and TraceML start the job too, the script being as it is, where
`--peers-env` names an environment in which they are installed (nvidia-resiliency-ext, traceml-ai; both train
here without a GPU). NVRx sees hangs of scripts that send its heartbeats, and this one sends none. TraceML
reports when a run ends. DLRover 0.6.1 does not start beside PyTorch 2.13.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import sheet

FAULTS = {
    "asleep": "rank 1 sleeps in the middle of training",
    "stuck-in-python": "rank 1 loops in Python code",
    "file-lock": "rank 1 waits for a file lock",
    "other-order": "rank 1 calls collectives in another order",
    "exception": "rank 1 raises an exception",
    "leaves-early": "rank 1 ends with exit code 0",
}
RANKS, GUILTY = 3, 1
PATIENCE_S = 15.0
START_LIMIT_S = 60.0
JOB = sheet.ROOT / "src" / "allaboard" / "drills" / "jobs" / "torch_ddp.py"
TELLING = re.compile(
    r"\brank\b|exitcode|Error|HANG\d|EXIT\d|NUM\d|JOIN\d|^  (why|do)\b|likely|Signal|root cause",
    re.I,
)
"""Lines that are quoted of what a launcher prints."""
VERDICTS = re.compile(r"Verdict|Why:|Next:|Error|exitcode|Signal|failed", re.I)
"""Lines that are quoted of what TraceML prints."""
NOISE = re.compile(
    r'^\s+File "[^"]*/torch/|return f\(|\^\^\^|raise ChildFailed|error_file|^Failures'
)
"""Lines of a traceback in the launcher itself."""
MAX_QUOTED_LINES, MAX_QUOTED_WIDTH = 24, 140


class Job:
    """The drill's job under a launcher, with what the launcher and the ranks print."""

    def __init__(
        self,
        launcher: list[str],
        fault: str,
        folder: Path,
        between: tuple[str, ...] = (),
        **variables: str,
    ) -> None:
        self.mark = folder / "mark"
        self.output = folder / "output"
        words = [
            str(JOB),
            *between,
            "--fault",
            fault,
            "--guilty",
            str(GUILTY),
            "--mark",
            str(self.mark),
        ]
        environment = sheet.environment(sys.executable) | {"OMP_NUM_THREADS": "1"} | variables
        self.process = subprocess.Popen(
            [*launcher, *words],
            env=environment,
            cwd=folder,
            stdout=self.output.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_for_fault(self) -> int:
        """Return how many bytes were printed when the fault happened.

        The guilty rank writes the mark when it starts, and anew when the fault happens.
        """
        until = time.monotonic() + START_LIMIT_S
        marks: set[str] = set()
        size = 0
        while len(marks) < 2:
            size = self.output.stat().st_size
            if time.monotonic() > until or (self.process.poll() is not None and not marks):
                raise SystemExit(f"the fault never happened:\n{self.output.read_text()[-3000:]}")
            if self.mark.exists() and (text := self.mark.read_text()):
                marks.add(text)
            time.sleep(0.02)
        return size

    def wait(self, seconds: float) -> bool:
        """Return True if the job ended within that time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def processes(self) -> list[tuple[int, int]]:
        """Return rank and PID of every process of the job that is alive; children that it forked, too."""
        alive: list[tuple[int, int]] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            rank = next((v for v in variables if v.startswith(b"RANK=")), b"")
            if rank and str(self.mark).encode() in words:
                alive.append((int(rank[5:]), int(folder.name)))
        return sorted(alive, reverse=True)

    def helpers(self) -> list[int]:
        """Return what a launcher has started beside the ranks: all that works in this job's folder."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cwd").readlink() == self.output.parent:
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def ranks(self) -> dict[int, int]:
        """Return the PID of each rank that is alive; a rank is older than the children that it forked."""
        return dict(self.processes())

    def printed(self, offset: int) -> str:
        return self.output.read_bytes()[offset:].decode(errors="replace")

    def end(self) -> None:
        """End what is left of the job's own processes."""
        if self.process.poll() is None:
            self.process.kill()
        for pid in [pid for _, pid in self.processes()] + self.helpers():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


def quote(text: str, pattern: re.Pattern[str] = TELLING) -> str:
    """Return the telling lines of an output, each with the indented lines that continue it."""
    kept: list[str] = []
    is_telling = False
    for line in map(str.rstrip, text.splitlines()):
        if NOISE.search(line):
            continue
        continues = is_telling and re.match(r" {4,}\S", line) is not None
        is_telling = continues or pattern.search(line) is not None
        if is_telling and line[:MAX_QUOTED_WIDTH] not in kept:
            kept.append(line[:MAX_QUOTED_WIDTH])
    return "\n".join(kept[:MAX_QUOTED_LINES]) or "(nothing)"


def py_spy(ranks: dict[int, int]) -> str:
    """Return the innermost frame of each rank's main thread and the first one in the script, by py-spy."""
    lines = []
    for rank, pid in sorted(ranks.items()):
        words = [str(Path(sys.executable).parent / "py-spy"), "dump", "--pid", str(pid)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        stack = done.stdout.partition('"MainThread"')[2].partition("\nThread ")[0].splitlines()[1:]
        own = [line for line in stack if JOB.name in line]
        frames = dict.fromkeys(line.strip() for line in (*stack[:1], *own[:1]))
        lines.append(f"rank {rank}: " + " < ".join(frames))
    return "\n".join(lines) or "(no process left)"


def faulthandler(job: Job, offset: int) -> str:
    """Return the innermost frame of each rank after SIGABRT; the ranks end with it."""
    os.kill(
        job.process.pid, signal.SIGSTOP
    )  # torchrun would end the others when the first one ends
    for pid in job.ranks().values():
        os.kill(pid, signal.SIGABRT)
    time.sleep(3)
    text = job.printed(offset)
    stacks = re.findall(r"Current thread[^\n]*\n((?:\s+File [^\n]*\n)+)", text)
    frames = []
    for stack in stacks:
        lines = [line.strip() for line in stack.splitlines()]
        own = [line for line in lines if JOB.name in line]
        frames.append(" < ".join(dict.fromkeys((*lines[:1], *own[:1]))))
    return "\n".join(frames) or "(nothing)"


def diagnose(pid: int) -> str:
    done = subprocess.run(
        sheet.allaboard("diagnose", pid),
        capture_output=True,
        text=True,
        check=False,
        env=sheet.environment(sys.executable),
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  environment:")]
    return quote("\n".join(lines))


def torchrun(*options: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), *options]


def under_torchrun(fault: str, folder: Path) -> dict[str, str]:
    job = Job(torchrun("--standalone"), fault, folder, PYTHONFAULTHANDLER="1", PYTHONUNBUFFERED="1")
    try:
        offset = job.wait_for_fault()
        if job.wait(PATIENCE_S):
            return {"torchrun": quote(job.printed(offset))}
        seen = {"torchrun": quote(job.printed(offset)), "py-spy": py_spy(job.ranks())}
        seen["allaboard diagnose"] = diagnose(job.process.pid)
        seen["faulthandler"] = faulthandler(job, job.output.stat().st_size)
        return seen
    finally:
        job.end()


def with_flight_recorder(fault: str, folder: Path) -> dict[str, str]:
    dumps = folder / "flight_"
    job = Job(
        torchrun("--standalone"),
        fault,
        folder,
        TORCH_FR_BUFFER_SIZE="2000",
        TORCH_NCCL_DUMP_ON_TIMEOUT="1",
        TORCH_FR_DUMP_TEMP_FILE=str(dumps),
        TORCH_NCCL_DEBUG_INFO_TEMP_FILE=str(dumps),
        TORCH_DISTRIBUTED_DEBUG="INFO",
    )
    try:
        offset = job.wait_for_fault()
        job.wait(PATIENCE_S)
        files = sorted(p.name for p in folder.glob("flight_*"))
        text = f"files: {', '.join(files) or 'none'}\n{quote(job.printed(offset))}"
        return {"Flight Recorder, DEBUG=INFO": text}
    finally:
        job.end()


def under_allaboard(fault: str, folder: Path) -> dict[str, str]:
    job = Job(sheet.allaboard("run", "-n", RANKS, "--progress", "off"), fault, folder)
    try:
        offset = job.wait_for_fault()
        job.wait(PATIENCE_S)
        return {"allaboard run": quote(job.printed(offset))}
    finally:
        job.end()


def under_nvrx(fault: str, folder: Path, environment: Path) -> dict[str, str]:
    options = ["--standalone", "--nproc-per-node", str(RANKS), "--ignore-missing-fault-tol-cfg"]
    job = Job([str(environment / "bin/ft_launcher"), *options], fault, folder)
    try:
        offset = job.wait_for_fault()
        job.wait(PATIENCE_S)
        return {"NVRx": quote(job.printed(offset))}
    finally:
        job.end()


def under_traceml(fault: str, folder: Path, environment: Path) -> dict[str, str]:
    command = [str(environment / "bin/traceml"), "run", "--nproc-per-node", str(RANKS)]
    job = Job(command, fault, folder, between=("--args",))
    try:
        offset = job.wait_for_fault()
        job.wait(PATIENCE_S)
        return {"TraceML": quote(job.printed(offset), VERDICTS)}
    finally:
        job.end()


def versions(environment: Path) -> str:
    """Return the versions of what is compared, as installed there."""
    names = ("nvidia-resiliency-ext", "traceml-ai")
    code = "import importlib.metadata as m, sys\nprint(*(n + ' ' + m.version(n) for n in sys.argv[1:]))"
    words = [str(environment / "bin/python"), "-c", code, *names]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--fault", action="append", choices=[*FAULTS], help="only this one")
    parser.add_argument("--peers-env", type=Path, help="environment with NVRx and TraceML")
    options = parser.parse_args()
    facts = sheet.circumstances(sys.executable)
    facts["seconds from the fault to the look"] = PATIENCE_S
    ways: list[Callable[[str, Path], dict[str, str]]] = [under_torchrun, with_flight_recorder]
    if options.peers_env is not None:
        facts["other tools"] = versions(options.peers_env)
        ways += [partial(way, environment=options.peers_env) for way in (under_nvrx, under_traceml)]
    ways.append(under_allaboard)
    parts = []
    for fault in options.fault or FAULTS:
        seen: dict[str, str] = {}
        for way in ways:
            with tempfile.TemporaryDirectory(prefix="allaboard-peers-") as folder:
                seen |= way(fault, Path(folder))
                seen = {k: v.replace(folder, "…") for k, v in seen.items()}
        parts.append(f"## {FAULTS[fault]}\n\nDrill `{fault}`.\n")
        parts += [f"**{tool}**\n\n```text\n{text}\n```\n" for tool, text in seen.items()]
        print(parts[-1], flush=True)
    body = "\n".join(parts).replace(str(sheet.ROOT) + "/", "")
    if options.peers_env is not None:
        body = body.replace(str(options.peers_env), "peers-env")
    body = re.sub(r'[^ "]*/site-packages/', "", body)
    sheet.page("peers", __doc__, facts, body, options.results)


if __name__ == "__main__":
    main()
