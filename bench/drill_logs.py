"""Writes the corpus of logs with ranks: each fault of the table once, without us.

Every rank is a process of its own, as a launcher of one host starts it, and its output goes into a
file of its own, ``rankN.log``. The label is the fault's: which rule names it, and which rank. The
logs are made compact (paths of this machine, long logs) and kept as cases in
bench/corpus/drills.txt, which bench/field.py scores beside the public reports.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sheet

SCRIPTS = sheet.ROOT / "src" / "allaboard" / "drills" / "jobs"
CORPUS = sheet.ROOT / "bench" / "corpus" / "drills.txt"
LIMIT_S = 75.0
"""Seconds that one job may take; what still runs then is ended."""
KILL_AFTER_LINES_S = 14.0
"""Seconds after which a rank is killed from outside, where that is the fault."""
SHOWN_LINES = 60
"""Lines of one log that are kept: the first and the last halves of them."""


class Fault(NamedTuple):
    """One job with a fault, and the right answer to its logs."""

    script: str
    """Its script among the jobs of the drills."""
    fault: str
    """Value of ``--fault``; "" for none."""
    guilty: int
    """The rank that has it; -1 for none."""
    right: str
    """Rules that name it, as a regular expression; "" if the job is healthy."""
    who: str
    """Who is named."""
    next: str = "."
    """What the next step says."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the script."""
    signal: int = 0
    """Signal that the guilty rank gets from outside; 0 for none."""
    skips: bool = False
    """True if the guilty rank is never started."""


TORCH = ("--timeout", "10")
FAULTS = {
    "torch-exception": Fault("torch_ddp.py", "exception", 1, "EXIT002", "worker 1", "torch_ddp.py:", TORCH),
    "torch-exits-3": Fault("torch_ddp.py", "exits-3", 2, "EXIT00[35]", "nobody|2", arguments=TORCH),
    "torch-killed": Fault(
        "torch_ddp.py", "killed-by-itself", 1, "EXIT005|LOG001", "nobody|1", arguments=TORCH
    ),
    "torch-dies-before-init": Fault(
        "torch_ddp.py", "dies-before-init", 1, "EXIT002", "worker 1", "train-00001|torch_ddp.py", TORCH
    ),
    "torch-never-comes": Fault(
        "torch_ddp.py", "", 2, "JOIN001|JOIN004", "nobody|2", "log|start", TORCH, skips=True
    ),
    "torch-other-order": Fault(
        "torch_ddp.py", "other-order", 1, "EXIT009|LOG00[13]|EXIT00[25]", ".", ".", TORCH
    ),
    "torch-loader-exception": Fault(
        "torch_ddp.py", "loader-exception", 1, "EXIT002", "worker 1", ".", (*TORCH, "--loader-workers", "1")
    ),
    "torch-loader-worker-killed": Fault(
        "torch_ddp.py", "loader-worker-killed", 1, "EXIT007", "worker 1", "dmesg|killed|shm",
        (*TORCH, "--loader-workers", "1"),
    ),
    "torch-port-taken": Fault("torch_ddp.py", "port-taken", 0, "NET005", ".", "ss -ltnp", TORCH),
    "jax-killed": Fault("jax_psum.py", "", 1, "EXIT005|LOG002", "nobody|1", signal=signal.SIGKILL),
    "jax-dies-before-init": Fault(
        "jax_psum.py", "dies-before-init", 1, "EXIT002", "worker 1", ".", ("--timeout", "15")
    ),
    "tf-exception": Fault("tf_mwms.py", "exception", 1, "EXIT002", "worker 1", "tf_mwms.py:"),
    "tf-killed": Fault("tf_mwms.py", "", 1, "EXIT005|LOG002", "nobody|1", signal=signal.SIGKILL),
    "tf-dies-before-init": Fault("tf_mwms.py", "dies-before-init", 1, "EXIT002", "worker 1", "."),
    "torch-healthy": Fault("torch_ddp.py", "", -1, "", ".", ".", (*TORCH, "--steps", "40")),
    "jax-healthy": Fault("jax_psum.py", "", -1, "", ".", ".", ("--steps", "40")),
    "tf-healthy": Fault("tf_mwms.py", "", -1, "", ".", ".", ("--steps", "40")),
}  # fmt: skip


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def variables(framework: str, rank: int, size: int, ports: list[int]) -> dict[str, str]:
    """Return what a launcher sets for one rank."""
    address = f"127.0.0.1:{ports[0]}"
    if framework == "jax":
        return {
            "JAX_PROCESS_ID": str(rank),
            "JAX_NUM_PROCESSES": str(size),
            "JAX_COORDINATOR_ADDRESS": address,
        }
    if framework == "tf":
        workers = [f"127.0.0.1:{port}" for port in ports]
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        return {"TF_CONFIG": json.dumps(task)}
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports[0]),
    }


def run_fault(name: str, fault: Fault, python: str, size: int = 3) -> dict[str, str]:
    """Run the job to its end, and return the log of each rank by file name."""
    framework = fault.script.partition("_")[0]
    ports = [free_port() for _ in range(size)]
    with tempfile.TemporaryDirectory(prefix="allaboard-drill-logs-") as folder:
        processes = {}
        for rank in range(size):
            if fault.skips and rank == fault.guilty:
                continue
            words = [
                python,
                str(SCRIPTS / fault.script),
                "--guilty",
                str(fault.guilty),
                "--at-step",
                "20",
            ]
            words += [
                "--mark",
                f"{folder}/mark",
                *(["--fault", fault.fault] if fault.fault else []),
            ]
            with (Path(folder) / f"rank{rank}.log").open("wb") as output:
                processes[rank] = subprocess.Popen(
                    [*words, *fault.arguments],
                    env=sheet.environment(python) | variables(framework, rank, size, ports)
                    | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
                    stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                )  # fmt: skip
        _wait(processes, fault)
        return {
            f"rank{rank}.log": compact(
                (Path(folder) / f"rank{rank}.log").read_text(errors="replace"), python
            )
            for rank in processes
        }


def _wait(processes: dict[int, subprocess.Popen[bytes]], fault: Fault) -> None:
    begin = time.monotonic()
    signalled = not fault.signal
    while time.monotonic() - begin < LIMIT_S and any(p.poll() is None for p in processes.values()):
        if not signalled and time.monotonic() - begin > KILL_AFTER_LINES_S:
            processes[fault.guilty].send_signal(fault.signal)
            signalled = True
        time.sleep(0.2)
    for process in processes.values():
        if process.poll() is None:
            process.kill()
            process.wait()


def compact(text: str, python: str) -> str:
    """Return a log without this machine's paths, and without its middle if it is long."""
    for environment in {Path(python).absolute().parents[1], Path(python).resolve().parents[1]}:
        text = text.replace(str(environment), "/opt/env")
    # Where the environment is linked to, in tracebacks and in warnings.
    text = re.sub(r'"/[^"\n]*?/(?=lib/python3)', '"/opt/env/', text)
    text = re.sub(r"(?<=[\s(])/[^\"\s]*?/(?=lib/python3)", "/opt/env/", text)
    text = text.replace(str(SCRIPTS), "/work/jobs")
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/allaboard-\S+?/", "/scratch/", text)
    text = re.sub(rf"\b{re.escape(os.uname().nodename)}\b", "node0", text)
    lines = [line.rstrip()[:600] for line in text.splitlines()]
    if len(lines) > SHOWN_LINES:
        lines = [*lines[: SHOWN_LINES // 2], *lines[-SHOWN_LINES // 2 :]]
    return "\n".join(lines) + "\n"


def as_case(name: str, fault: Fault, logs: dict[str, str]) -> str:
    """Return the case as bench/field_cases.py reads it."""
    keys = [f"source: drill: {fault.script} --fault {fault.fault or 'none'}, rank {fault.guilty}"]
    keys += [f"right: {fault.right}", f"who: {fault.who}", f"next: {fault.next}"]
    keys += [f"exit: {int(bool(fault.right))}"]
    files = "".join(f"---- {file}\n{text}" for file, text in sorted(logs.items()))
    return f"==== {name}\n" + "\n".join(keys) + "\n" + files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the interpreter that has the frameworks")
    parser.add_argument("--only", nargs="+", default=list(FAULTS), metavar="NAME")
    parser.add_argument("--output", type=Path, default=CORPUS)
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    cases = []
    for name in options.only:
        cases.append(as_case(name, FAULTS[name], run_fault(name, FAULTS[name], options.python)))
        options.output.write_text("".join(cases))
        print(name, flush=True)


if __name__ == "__main__":
    main()
