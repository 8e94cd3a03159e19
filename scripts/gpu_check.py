"""Tries allaboard on the GPUs of this machine: one to eight of them, within ten minutes.

    scripts/gpu-check --out gpu-check/          # all steps that this machine can run
    scripts/gpu-check --dry-run                 # which steps would run, and why others would not
    scripts/gpu-check --cpu --out gpu-check/    # the steps that also have a form without a GPU

Each step is a row of STEPS: real training under ``allaboard run``, faults that are staged on the GPU, and
every instrument that is installed. It prints a table of what held, and writes results.json, results.md
(rows for docs/versions.md, with the hardware) and what the instruments printed, so that it can become a
test's sample. The frameworks are those of the Python that runs this; allaboard is that of this folder.

Exit code: 0 if all steps that ran held, 1 if one did not, 3 if there is no GPU and nothing ran.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
JOBS = ROOT / "scripts" / "gpu_check_jobs"
NO_GPU_EXIT_CODE = 3
TOTAL_S = 570.0
"""Seconds for everything; steps that would begin later are left out."""
PROBE_CUDA = (
    "import torch; print(torch.version.cuda or '', torch.cuda.device_count(), torch.__version__)"
)


@dataclass(frozen=True)
class Machine:
    """What is there."""

    gpus: int = 0
    hardware: str = ""
    frameworks: tuple[str, ...] = ()
    """Names of what can be imported; "torch-cuda" if torch is built for CUDA and sees a GPU."""
    programs: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a step showed."""

    held: bool
    detail: str


@dataclass(frozen=True)
class Step:
    """One row: what is tried, and what it needs."""

    name: str
    shows: str
    needs: tuple[str, ...]
    run: Callable[[Bench], Outcome]
    timeout_s: float = 120.0
    """Seconds after which everything that it started is ended."""
    on_cpu: bool = False
    """True if --cpu runs it without a GPU."""


@dataclass(frozen=True)
class Result:
    """The outcome of one step, for the table."""

    name: str
    shows: str
    state: str
    detail: str
    seconds: float


class Bench:
    """Runs programs for the steps, and ends them all."""

    def __init__(self, out: Path, machine: Machine, device: str) -> None:
        self.out, self.machine, self.device = out, machine, device
        self.deadline = time.monotonic() + TOTAL_S
        self._started: list[subprocess.Popen[str]] = []

    def environment(self) -> dict[str, str]:
        """Return the environment of everything that is started: allaboard of this folder."""
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        return os.environ | {"PYTHONPATH": path, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}

    def call(self, command: Sequence[str], timeout_s: float, name: str = "") -> tuple[int, str]:
        """Return exit code and output of a command, 124 after the timeout; keep the output as a file."""
        process = self.start(command)
        try:
            output, _ = process.communicate(timeout=timeout_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process)
            output, code = process.communicate()[0], 124
        if name:
            (self.out / f"{name}.txt").write_text(output)
        return code, output

    def start(self, command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own."""
        process = subprocess.Popen(
            command,
            env=self.environment() | variables,
            cwd=self.out,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """End a process and all of its session."""
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                break
            os.killpg(process.pid, number)
            if number is signal.SIGTERM:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue

    def close(self) -> None:
        """End whatever is left."""
        for process in list(self._started):
            self.end(process)

    def allaboard(self, *arguments: str) -> list[str]:
        """Return the command of allaboard with these arguments."""
        return [sys.executable, "-m", "allaboard", *arguments]

    def train(
        self, workers: int, job: str, *arguments: str, timeout_s: float = 600.0
    ) -> tuple[int, str]:
        """Run one of the jobs under ``allaboard run``."""
        name = f"{Path(job).stem}-{'-'.join(arguments[1::2]) or workers}"
        command = self.allaboard(
            "run",
            "-n",
            str(workers),
            "--run-dir",
            str(self.out / name),
            str(JOBS / job),
            *arguments,
        )
        return self.call(command, timeout_s, f"run-{name}")

    def start_ranks(self, size: int, job: str, *arguments: str) -> list[subprocess.Popen[str]]:
        """Start the ranks of a job without allaboard, and return once each has printed "ready"."""
        port = str(29500 + os.getpid() % 1000)
        ranks = [
            self.start(
                [sys.executable, str(JOBS / job), *arguments],
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCH_FR_BUFFER_SIZE="2000",
            )
            for rank in range(size)
        ]  # fmt: skip
        for process in ranks:
            for line in process.stdout or ():
                if "ready" in line:
                    break
        return ranks


def _ends_well(code: int, output: str) -> Outcome:
    last = output.strip().splitlines()[-1:] or ["no output"]
    return Outcome(code == 0 and "trained" in output, f"exit code {code}: {last[0][:160]}")


def _says(output: str, pattern: str) -> Outcome:
    found = re.search(pattern, output)
    line = next((x for x in output.splitlines() if found and found[0] in x), "")
    return Outcome(found is not None, line.strip()[:200] if found else f"not said: {pattern}")


def train_torch(backend: str, workers: Callable[[Bench], int]) -> Callable[[Bench], Outcome]:
    """Return a step that trains with torch."""

    def run(bench: Bench) -> Outcome:
        count = workers(bench)
        return _ends_well(
            *bench.train(count, "torch_job.py", "--backend", backend, "--device", bench.device)
        )

    return run


def train_other(job: str) -> Callable[[Bench], Outcome]:
    """Return a step that trains with another framework."""

    def run(bench: Bench) -> Outcome:
        return _ends_well(*bench.train(1, job, "--device", bench.device))

    return run


def read_instrument(*command: str) -> Callable[[Bench], Outcome]:
    """Return a step that runs an instrument, and lets ``allaboard diagnose`` read what it prints."""

    def run(bench: Bench) -> Outcome:
        name = re.sub(r"\W+", "-", " ".join(command))
        code, output = bench.call(command, 60, name)
        if code != 0:
            return Outcome(
                False, f"{shlex.join(command)}: exit code {code}: {output.strip()[:120]}"
            )
        code, answer = bench.call(
            bench.allaboard("diagnose", str(bench.out / f"{name}.txt")), 60, f"diagnose-{name}"
        )
        said = answer.strip().splitlines()[:1] or ["nothing"]
        return Outcome(
            code in (0, 1) and "witness" not in answer, f"read; diagnose: {said[0][:140]}"
        )

    return run


def out_of_memory(bench: Bench) -> Outcome:
    """A rank asks for more memory than the GPU has."""
    code, output = bench.train(1, "torch_fault.py", "--fault", "memory", "--device", bench.device)
    said = _says(output, r"(?i)(error|warning) \w+\d{3} [^\n]*")
    about = "out of memory" in output.lower()
    return Outcome(code != 0 and said.held and about, f"exit code {code}: {said.detail}")


def missing_readings(events: str) -> list[str]:
    """Return what the snapshots of a feed, as JSON lines, lack of a GPU and of the ranks on it. Pure."""
    snapshots = []
    for line in events.splitlines():
        try:
            snapshots.append(json.loads(line).get("snapshot") or {})
        except ValueError:  # the last line may not be whole
            continue
    gpus = [gpu for s in snapshots for host in s.get("hosts", ()) for gpu in host.get("gpus", ())]
    ranks = [rank for s in snapshots for rank in s.get("ranks", ())]
    fields = (
        "name",
        "memory_limit_nbytes",
        "memory_nbytes",
        "temperature_c",
        "power_w",
        "clock_mhz",
    )
    missing = [name for name in fields if not any(gpu.get(name) for gpu in gpus)]
    if not any(rank.get("device_memory") for rank in ranks):
        missing.append("device_memory of a rank")
    return missing


def readings(bench: Bench) -> Outcome:
    """A job that trains: the driver's numbers and those of the framework are in its feed."""
    events = bench.out / "readings.jsonl"
    job = ["-n", "1", "--run-dir", str(bench.out / "readings"), "--events", str(events)]
    words = [str(JOBS / "torch_job.py"), "--backend", "nccl", "--steps", "100000000"]
    process = bench.start(bench.allaboard("run", *job, *words))
    until = time.monotonic() + 60
    missing = ["everything"]
    while missing and time.monotonic() < until and process.poll() is None:
        time.sleep(1)
        missing = missing_readings(events.read_text()) if events.exists() else missing
    bench.end(process)
    # Some GPUs tell neither power nor clock.
    needed = {"everything", "name", "memory_limit_nbytes", "device_memory of a rank"}
    return Outcome(not needed & set(missing), f"not read: {', '.join(missing) or 'nothing'}")


def leftover(bench: Bench) -> Outcome:
    """A process of an earlier run holds memory: nvidia-smi lists it, and our reader sees it."""
    holder = bench.start([sys.executable, str(JOBS / "torch_fault.py"), "--fault", "holds"])
    for line in holder.stdout or ():
        if "ready" in line:
            break
    _, xml = bench.call(["nvidia-smi", "-q", "-x"], 60, "nvidia-smi-leftover")
    bench.end(holder)
    sys.path.insert(0, str(ROOT / "src"))
    from allaboard.diagnosis.instruments.nvidia_smi_xml import read_log
    from allaboard.facts import Exhibit

    testimony = read_log(Exhibit(name="nvidia-smi.xml", data=xml.encode()))
    gpus = testimony.hardware.gpus if testimony is not None else ()
    held = [(g.index, p) for g in gpus for p in g.processes if p.memory_mib > 500]
    # In a container nvidia-smi shows the pids of the host, or none.
    return Outcome(
        bool(held), f"processes with memory: {[(i, p.pid, p.memory_mib) for i, p in held]}"
    )


def kernel_hangs(bench: Bench) -> Outcome:
    """A kernel does not end: the rank waits in synchronize()."""
    rank, *_ = bench.start_ranks(1, "torch_fault.py", "--fault", "kernel", "--device", bench.device)
    time.sleep(3)
    _, output = bench.call(bench.allaboard("diagnose", str(rank.pid)), 90, "diagnose-kernel")
    bench.end(rank)
    return _says(output, r"torch_fault\.py:\d+[^\n]*|synchronize[^\n]*")


def stopped_rank(backend: str) -> Callable[[Bench], Outcome]:
    """Return a step in which rank 1 of two is stopped by SIGSTOP."""

    def run(bench: Bench) -> Outcome:
        ranks = bench.start_ranks(
            2, "torch_job.py", "--backend", backend, "--device", bench.device, "--steps", "1000000"
        )
        time.sleep(2)
        ranks[1].send_signal(signal.SIGSTOP)
        time.sleep(8)
        if backend == "nccl":  # the first answer in which NCCL misses it
            bench.call(bench.allaboard("diagnose", "ras://127.0.0.1"), 90, "ras-stopped")
        _, output = bench.call(
            bench.allaboard("diagnose", str(ranks[0].pid)), 90, f"stopped-{backend}"
        )
        for process in ranks:
            bench.end(process)
        return _says(output, r"HANG001[^\n]*")

    return run


def ask_ras(bench: Bench) -> Outcome:
    """NCCL's service answers about a job that trains, and says nothing wrong."""
    ranks = bench.start_ranks(
        1, "torch_job.py", "--backend", "nccl", "--device", "cuda", "--steps", "1000000"
    )
    time.sleep(2)
    code, output = bench.call(bench.allaboard("diagnose", "ras://127.0.0.1"), 90, "ras-healthy")
    if shutil.which("ncclras"):
        bench.call(["ncclras", "-v"], 30, "ncclras-text")
        bench.call(["ncclras", "-f", "json"], 30, "ncclras-json")
    bench.end(ranks[0])
    return Outcome(code == 0, f"exit code {code}: {output.strip()[-160:]}")


def duplicate_gpu(bench: Bench) -> Outcome:
    """Two ranks take one GPU: NCCL refuses it, and the log is understood."""
    _, output = bench.train(2, "torch_job.py", "--backend", "nccl", "--device", "cuda:0")
    return _says(output, r"LOG004[^\n]*|ranks? \d+ and \d+ use one GPU[^\n]*|Duplicate GPU[^\n]*")


def kernel_log(bench: Bench) -> Outcome:
    """The kernel's log can be read, and has no Xid; or has some, which are named."""
    code, output = bench.call(["dmesg"], 30, "dmesg")
    if code != 0:
        return Outcome(True, "dmesg needs root here: nothing is read of it")
    code, answer = bench.call(bench.allaboard("diagnose", str(bench.out / "dmesg.txt")), 60)
    events = output.count("NVRM: Xid")
    return Outcome((events > 0) == ("HW001" in answer), f"{events} Xid lines; exit code {code}")


STEPS = (
    Step("nvidia-smi", "nvidia-smi -q -x is read", ("nvidia-smi",),
         read_instrument("nvidia-smi", "-q", "-x")),
    Step("kernel-log", "Xid errors of the kernel's log are named", ("gpu", "dmesg"), kernel_log),
    Step("dcgm-health", "dcgmi health is read", ("dcgmi",), read_instrument("dcgmi", "health", "-c")),
    Step("ibstat", "ibstat is read", ("ibstat",), read_instrument("ibstat")),
    Step("torch-nccl-1", "one rank trains with nccl", ("torch-cuda",), train_torch("nccl", lambda b: 1)),
    Step("torch-nccl-all", "a rank on each GPU trains with nccl", ("torch-cuda", "gpus"),
         train_torch("nccl", lambda b: min(8, b.machine.gpus))),
    Step("readings", "the numbers of driver and framework are shown", ("torch-cuda", "pynvml"), readings),
    Step("torch-gloo", "two ranks train with gloo", ("torch-cuda",), train_torch("gloo", lambda b: 2),
         on_cpu=True),
    Step("tensorflow", "TensorFlow trains", ("gpu", "tensorflow"), train_other("tf_job.py"), 150,
         on_cpu=True),
    Step("jax", "JAX trains", ("gpu", "jax"), train_other("jax_job.py"), 150, on_cpu=True),
    Step("ras", "NCCL's service is asked about a job that trains", ("torch-cuda",), ask_ras),
    Step("out-of-memory", "a rank without memory on its GPU is named", ("torch-cuda",), out_of_memory),
    Step("leftover", "a process that holds memory is seen", ("torch-cuda", "nvidia-smi"), leftover),
    Step("kernel-hangs", "a rank whose kernel does not end is named", ("torch-cuda",), kernel_hangs),
    Step("duplicate-gpu", "two ranks on one GPU are named", ("torch-cuda",), duplicate_gpu),
    Step("nccl-stopped", "a stopped rank is named (nccl)", ("torch-cuda", "gpus"), stopped_rank("nccl")),
    Step("gloo-stopped", "a stopped rank is named (gloo)", ("torch-cuda",), stopped_rank("gloo"),
         on_cpu=True),
)  # fmt: skip


def why_not(step: Step, machine: Machine, cpu: bool) -> str:
    """Return why a step cannot run on this machine; "" if it can. Pure."""
    if cpu:
        wanted = [n for n in step.needs if n in ("tensorflow", "jax")] or ["torch"]
        lacking = [n for n in wanted if n not in machine.frameworks]
        if not step.on_cpu:
            return "has no form without a GPU"
        return f"needs {', '.join(lacking)}" if lacking else ""
    if machine.gpus == 0:
        return "no GPU is visible"
    for need in step.needs:
        if need == "gpu":
            continue
        if need == "gpus":
            if machine.gpus < 2:
                return "needs two GPUs"
        elif need not in machine.frameworks and need not in machine.programs:
            return f"needs {need}"
    return ""


def look_at_machine() -> Machine:
    """Return what is installed and visible here."""
    programs = ("nvidia-smi", "dcgmi", "ncclras", "ibstat", "dmesg")
    modules = ("torch", "tensorflow", "jax", "pynvml")
    frameworks = [n for n in modules if importlib.util.find_spec(n)]
    versions, gpus, hardware = {}, 0, ""
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
        gpus, hardware = len(lines), f"{len(lines)} x {lines[0]}" if lines else ""
    if "torch" in frameworks:
        probe = [sys.executable, "-c", PROBE_CUDA]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=120, check=False)
        cuda, count, version = [*done.stdout.rsplit(" ", 2), "", "", ""][:3]
        versions["torch"] = f"{version.strip()} (CUDA {cuda or 'none'})"
        if cuda and count.isdecimal() and int(count):
            frameworks.append("torch-cuda")
            gpus = gpus or int(count)
    return Machine(
        gpus=gpus,
        hardware=hardware or (f"{gpus} GPUs" if gpus else "no GPU"),
        frameworks=tuple(frameworks),
        programs=tuple(p for p in programs if shutil.which(p)),
        versions=versions,
    )


def run_steps(bench: Bench, cpu: bool, dry_run: bool, names: Sequence[str] = ()) -> list[Result]:
    """Run every step that this machine can run, one after another; a step that raises has not held."""
    results = []
    for step in STEPS:
        if names and step.name not in names:
            continue
        began = time.monotonic()
        reason = why_not(step, bench.machine, cpu)
        if not reason and began > bench.deadline - 20:
            reason = "no time was left"
        if reason or dry_run:
            state = "skipped" if reason else "would run"
            results.append(Result(step.name, step.shows, state, reason, 0.0))
            continue
        # A job that hangs holds its step no longer than this: everything that it started is ended.
        watchdog = threading.Timer(min(step.timeout_s, bench.deadline - began), bench.close)
        watchdog.daemon = True
        watchdog.start()
        try:
            outcome = step.run(bench)
        except Exception as error:
            outcome = Outcome(False, f"the step itself failed: {error!r}")
        finally:
            watchdog.cancel()
            bench.close()
        seconds = round(time.monotonic() - began, 1)
        state = "held" if outcome.held else "FAILED"
        results.append(Result(step.name, step.shows, state, outcome.detail, seconds))
        print(f"{state:<8} {step.name:<16} {seconds:5.1f} s  {outcome.detail}", flush=True)
    return results


def as_markdown(results: Sequence[Result], machine: Machine) -> str:
    """Return the results as a table for docs/versions.md."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    rows = [
        f"Hardware: {machine.hardware}. {versions}",
        "",
        "| step | shows | result |",
        "|---|---|---|",
    ]
    for result in results:
        detail = result.detail.replace("|", "/") if result.state in ("FAILED", "skipped") else ""
        text = f"{result.state}{': ' if detail else ''}{detail}"
        rows.append(f"| {result.name} | {result.shows} | {text} |")
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps, print the table, write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("gpu-check"), help="folder for the results"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say which steps would run")
    parser.add_argument("--cpu", action="store_true", help="run the forms without a GPU")
    parser.add_argument("--step", action="append", default=[], choices=[s.name for s in STEPS])
    options = parser.parse_args(arguments)
    machine = look_at_machine()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    bench = Bench(out, machine, "cpu" if options.cpu else "cuda")
    print(f"{machine.hardware}; {', '.join(machine.frameworks)}; {', '.join(machine.programs)}")
    try:
        results = run_steps(bench, options.cpu, options.dry_run, options.step)
    finally:
        bench.close()
    for result in results:
        if result.state in ("skipped", "would run"):
            print(f"{result.state:<9} {result.name:<16} {result.detail or result.shows}")
    document = {"machine": asdict(machine), "results": [asdict(r) for r in results]}
    (out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    (out / "results.md").write_text(as_markdown(results, machine))
    if any(r.state == "FAILED" for r in results):
        return 1
    if not options.dry_run and all(r.state == "skipped" for r in results):
        print(
            "no step could run: there is no GPU here" if machine.gpus == 0 else "no step could run"
        )
        return NO_GPU_EXIT_CODE
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
