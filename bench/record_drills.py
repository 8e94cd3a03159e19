"""Records what the frameworks write when a drill runs without allaboard, with a log for each task.

Every drill of the table runs once: its script is started as a launcher of one host starts it, the
fault is put in, and what still runs after a bounded time is ended by SIGTERM, as a batch system
does at its limit. A drill in which no task writes anything leaves no case: a job that hangs without
a timeout is silent, and needs `allaboard run` or `allaboard diagnose PID`.

The right answers are in bench/drill_answers.py. They were written from the fault that was staged,
before any of the logs was judged.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sheet
from drill_answers import ANSWERS, Answer
from drill_logs import SCRIPTS, compact, free_port

from allaboard.contracts import USUAL, Drill
from allaboard.drills import cpu_limit
from allaboard.drills.run_drill import all_drills, lacks

CORPUS = sheet.ROOT / "bench" / "corpus" / "table.txt"
SHORT_TIMEOUT = sheet.ROOT / "bench" / "short_timeout"
LIMIT_S = 300.0
"""Seconds that one job may take; what still runs then is ended."""
GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL."""
TIMEOUT_S = 60.0
"""Timeout of PyTorch's collectives, which is half an hour by default."""
OUTSIDE_AFTER_S = 120.0
"""Seconds after which a fault is put in from outside, if the script does not mark its progress."""
AT_STEP = 20
MARKS = {"torch_ddp.py": 2, "tf_mwms.py": 2, "jax_psum.py": 1}
"""How many times the guilty rank of a script writes its mark until it has reached the step."""
STEPS = "--steps"
WITH_TIMEOUT = ("torch_ddp.py", "torch_by_hand.py")
"""Scripts that take the timeout of their group as an argument."""
WITH_STEPS = ("SLOW", "DATA", "NUM00", "NUM007", "HANG016")
"""Rules of faults with which a job trains on: it gets an end."""


class Task:
    """One process of the job, and its log."""

    def __init__(self, name: str, words: list[str], env: dict[str, str], folder: Path) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )


def tasks_of(drill: Drill) -> list[tuple[str, int]]:
    """Return the tasks in the order of their numbers: chief, workers, servers."""
    workers = drill.workers or USUAL
    chief = [("chief", 0)] if "--chief" in drill.options else []
    servers = 0
    if "--ps" in drill.options:
        servers = int(drill.options[drill.options.index("--ps") + 1])
    listed = [("worker", index) for index in range(workers)]
    return [*chief, *listed, *(("ps", index) for index in range(servers))]


def name_of(drill: Drill, task: tuple[str, int]) -> str:
    """Return the name of a task's log, without its ending."""
    if drill.script == "torch_spawned.py" or (drill.workers == 1 and len(tasks_of(drill)) == 1):
        return "train"
    return f"{task[0]}-{task[1]}" if drill.script.startswith("tf") else f"rank{task[1]}"


def variables(drill: Drill, number: int, ports: list[int]) -> dict[str, str]:
    """Return what a launcher sets for one task."""
    tasks = tasks_of(drill)
    kind, index = tasks[number]
    address = f"127.0.0.1:{ports[0]}"
    if drill.script.startswith("jax"):
        return {
            "JAX_PROCESS_ID": str(index),
            "JAX_NUM_PROCESSES": str(len(tasks)),
            "JAX_COORDINATOR_ADDRESS": address,
        }
    if drill.script.startswith("tf"):
        if len(tasks) == 1:
            return {}
        cluster: dict[str, list[str]] = {}
        for (job, _), port in zip(tasks, ports, strict=True):
            cluster.setdefault(job, []).append(f"127.0.0.1:{port}")
        return {
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        }
    if drill.script == "torch_spawned.py":
        return {}
    return {
        "RANK": str(index),
        "LOCAL_RANK": str(index),
        "WORLD_SIZE": str(len(tasks)),
        "LOCAL_WORLD_SIZE": str(len(tasks)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports[0]),
    }


def words_of(name: str, drill: Drill, python: str, folder: Path) -> list[str]:
    """Return the command of each task."""
    words = [python, str(SCRIPTS / drill.script)]
    marks = drill.outside is not None and drill.script in MARKS
    if drill.inside or marks:
        fault = [] if marks else ["--fault", drill.fault or name]
        words += [*fault, "--guilty", str(drill.guilty), "--at-step", str(AT_STEP)]
        words += ["--mark", str(folder / "mark")]
    words += drill.arguments
    if drill.script in WITH_TIMEOUT and "--timeout" not in words:
        words += ["--timeout", str(TIMEOUT_S)]
    if drill.expects.startswith(WITH_STEPS) and STEPS not in words and "torch" in drill.script:
        words += [STEPS, "60"]
    return words


def record(name: str, drill: Drill, python: str) -> dict[str, str]:
    """Run the job to its end, and return the log of each task by file name."""
    tasks = tasks_of(drill)
    ports = [free_port() for _ in tasks]
    with tempfile.TemporaryDirectory(prefix="allaboard-drill-logs-") as name_of_folder:
        folder = Path(name_of_folder)
        words = words_of(name, drill, python, folder)
        env = sheet.environment(python) | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        if drill.script.startswith("torch"):
            env |= {"PYTHONPATH": str(SHORT_TIMEOUT), "ALLABOARD_BENCH_TIMEOUT_S": str(TIMEOUT_S)}
        started = [
            Task(name_of(drill, task), words, env | variables(drill, number, ports), folder)
            for number, task in enumerate(tasks)
        ]
        _run(drill, started, folder / "mark")
        return {
            task.log.name: compact(task.log.read_text(errors="replace"), python) for task in started
        }


def _run(drill: Drill, tasks: list[Task], mark: Path) -> None:
    begin = time.monotonic()
    limit = LIMIT_S
    guilty = tasks[drill.guilty].process.pid if 0 <= drill.guilty < len(tasks) else 0
    has_trained = _watch_mark(mark, MARKS.get(drill.script, 0), begin)
    pending = drill.outside
    try:
        while any(task.process.poll() is None for task in tasks):
            if pending is not None and has_trained():
                pending(guilty)
                pending, limit = None, time.monotonic() - begin + LIMIT_S / 2
            if time.monotonic() - begin > limit:
                break
            time.sleep(0.2)
    finally:
        if drill.heal is not None and pending is None and _runs(tasks, guilty):
            drill.heal(guilty)
        _end(tasks)
        if "cgroup-cpu" in drill.needs:
            cpu_limit.sweep()


def _runs(tasks: list[Task], pid: int) -> bool:
    return any(t.process.pid == pid and t.process.poll() is None for t in tasks)


def _watch_mark(mark: Path, writes: int, begin: float) -> Callable[[], bool]:
    """Return a function that returns True once the mark was written as many times."""
    seen: set[str] = set()

    def has_trained() -> bool:
        if not writes:
            return time.monotonic() - begin > OUTSIDE_AFTER_S
        if mark.exists():
            seen.add(mark.read_text())
        return len(seen) >= writes

    return has_trained


def _end(tasks: list[Task]) -> None:
    for task in tasks:
        if task.process.poll() is None:
            task.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    for task in tasks:
        try:
            task.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            task.process.kill()
            task.process.wait()


def as_case(name: str, drill: Drill, answer: Answer, logs: dict[str, str]) -> str:
    """Return the case as bench/field_cases.py reads it."""
    keys = [f"source: drill: {name}, {drill.script}: {drill.title}"]
    keys += [f"right: {answer.right}", f"who: {answer.who}", f"next: {answer.next}"]
    keys += [f"not: {answer.forbidden}"] if answer.forbidden else []
    keys += [f"exit: {int(bool(answer.right))}"]
    keys += [f"open: {answer.open}"] if answer.open else []
    files = "".join(f"---- {file}\n{text}" for file, text in sorted(logs.items()))
    return f"==== {name}\n" + "\n".join(keys) + "\n" + files


def _record_into(folder: Path, name: str, drill: Drill, python: str) -> None:
    if why := lacks(drill):
        print(f"{name}: {why}", flush=True)
        return
    for file, text in record(name, drill, python).items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(name, flush=True)


def write_cases(folder: Path, output: Path) -> None:
    """Write the cases of all recorded drills that have an answer and at least one line."""
    drills = all_drills()
    cases = []
    for name, answer in sorted(ANSWERS.items()):
        logs = {path.name: path.read_text() for path in (folder / name).glob("*.log")}
        if any(text.strip() for text in logs.values()):
            cases.append(as_case(name, drills[name], answer, logs))
    output.write_text("".join(cases))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter that has the frameworks")
    parser.add_argument("--logs", type=Path, required=True, help="folder of the recorded logs")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--output", type=Path, help="write the cases there, and record nothing")
    options = parser.parse_args()
    if options.output is not None:
        write_cases(options.logs, options.output)
        return
    drills = all_drills()
    names = options.only or [n for n in drills if not (options.logs / n).exists()]
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(_record_into, options.logs, name, drills[name], options.python)
            for name in names
        ]
        for future in futures:
            future.result()


if __name__ == "__main__":
    main()
