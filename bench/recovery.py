"""How long from the kill of a rank to the next training step, and from where the time comes.

The same script (jobs/recover.py, PyTorch DDP on gloo) is started by `allaboard run -n N --on-failure
restart`, by the same with `--standby N` and with `--warm` (with its imports at the top), and by `torchrun
--standalone --max-restarts 1`, in turns whose order rotates; k rounds. Once every rank has trained for a
second, and all processes stand by that are to, the last rank is killed by SIGKILL; a moment counts when the
last rank of the new round has reached it, in seconds
since the kill. What the processes that stand by take of the machine while they import is not in it. The
control is a bare loop of Popen that starts the same script on the same machine in the same rounds, from its
start to its first step: without processes that stand by, no launcher can be back sooner than that by much.
Every round gives one ratio to torchrun; the table has their minimum, median and maximum, over the rounds in
which both came back. Some rounds under torchrun 2.13 do not: its new ranks never meet in init_process_group.
That is counted as not back after a minute; its cause was not sought.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import sheet

import launch

JOB = str(sheet.JOBS / "recover.py")
JOB_TOP = str(sheet.JOBS / "recover_top.py")
MOMENTS = ("first line", "torch", "init done", "first step")
LIMIT = 60.0
TARGETS = {"allaboard": 1.0, "allaboard, standby": 0.6, "allaboard, warm": 0.6}


def command(way: str, n: int, python: str, marks: Path) -> list[str]:
    words = [JOB, "--marks", str(marks)]
    if way == "torchrun":
        run = [python, "-m", "torch.distributed.run", "--nproc-per-node", str(n)]
        return [*run, "--standalone", "--max-restarts", "1", *words]
    run = ["run", "--run-dir", str(marks / "run"), "-n", str(n), "--on-failure", "restart"]
    if way == "allaboard, standby":
        run += ["--standby", str(n)]
    if way == "allaboard, warm":
        return sheet.allaboard(*run, "--warm", JOB_TOP, *words[1:])
    return sheet.allaboard(*run, *words)


def moments(marks: Path, round_: int, n: int) -> list[dict[str, float]]:
    """Those of every rank; [] while one is missing."""
    files = list(marks.glob(f"round-{round_}-rank-*.json"))
    return [json.loads(f.read_text()) for f in files] if len(files) == n else []


def wait(process: subprocess.Popen[bytes], marks: Path, round_: int, n: int) -> Any:
    """The moments of every rank in this round; [] where they do not come."""
    deadline = time.monotonic() + LIMIT
    while not (found := moments(marks, round_, n)):
        if time.monotonic() > deadline or process.poll() is not None:
            return []
        time.sleep(0.005)
    return found


def stand_by(marks: Path) -> bool:
    """Whether all processes that are to stand by have done so within the limit."""
    deadline = time.monotonic() + LIMIT
    while b" by for the next round" not in (marks / "output").read_bytes():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def once(way: str, n: int, python: str, environment: dict[str, str]) -> dict[str, float]:
    """Seconds from the kill, or for the control from the start, to each moment of the last rank;
    infinite where it never came."""
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as folder:
        marks = Path(folder)
        with (marks / "output").open("wb") as output:
            if way == "bare start":
                begin = time.time()
                again = environment | {"TORCHELASTIC_RESTART_COUNT": "1"}
                words = [JOB, "--marks", folder]
                code = launch.shell_loop(n, python, words, again, output, sessions=True)
                assert code == 0
                return {m: max(r[m] for r in moments(marks, 1, n)) - begin for m in MOMENTS}
            process = subprocess.Popen(
                command(way, n, python, marks),
                env=environment,
                stdout=output,
                stderr=output,
                cwd=marks,
            )
            before = wait(process, marks, 0, n)
            if not before:
                sys.exit(f"{way} did not start: {(marks / 'output').read_text(errors='replace')}")
            if way == "allaboard, standby" and not stand_by(marks):
                sys.exit(f"none stands by: {(marks / 'output').read_text(errors='replace')}")
            time.sleep(1.0)
            kill = time.time()
            os.kill(int(max(before, key=lambda r: r["pid"])["pid"]), signal.SIGKILL)
            after = wait(process, marks, 1, n)
            end(process, well=bool(after))
        return {m: max((r[m] for r in after), default=float("inf")) - kill for m in MOMENTS}


def end(process: subprocess.Popen[bytes], well: bool) -> None:
    """Waits for the end of a job that is well; ends one that is not, with its workers."""
    if not well:
        process.terminate()
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def back(rounds: list[dict[str, Any]], *ways: str) -> list[dict[str, Any]]:
    """The rounds in which all of these came to their first step again."""
    return [r for r in rounds if all(r[w]["first step"] < float("inf") for w in ways)]


def body(rounds: list[dict[str, Any]], ways: list[str]) -> str:
    """The tables."""
    seconds = sheet.table(
        ("since the kill (bare start: since the start)", "back", *MOMENTS),
        [
            (
                w,
                f"{len(back(rounds, w))} of {len(rounds)}",
                *(median(r[w][m] for r in back(rounds, w) or rounds) for m in MOMENTS),
            )
            for w in ways
        ],
    )
    parts = [f"Seconds, median:\n\n{seconds}"]
    for way, target in TARGETS.items():
        rows = []
        for base in ("torchrun", "bare start"):
            both = back(rounds, way, base)
            if not both:
                continue
            for m in MOMENTS:
                low, middle, high = launch.ratios(both, way, base, m)
                judged = (
                    (target, middle <= target) if (base, m) == ("torchrun", "first step") else ()
                )
                rows.append((f"{m} / {base}", low, middle, high, *(judged or (None, None))))
        parts.append(sheet.table((way, "min", "median", "max", "target", "met"), rows))
    return "\n".join(parts)


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=5, help="rounds")
    parser.add_argument("-n", type=int, default=2, help="ranks")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k, "ranks": options.n}
    environment = sheet.environment(options.python)
    environment.pop("TORCHELASTIC_RESTART_COUNT", None)
    ways = ["allaboard", "torchrun", "allaboard, standby", "allaboard, warm", "bare start"]
    once("bare start", options.n, options.python, environment)  # page cache; not counted
    rounds: list[dict[str, Any]] = []
    for k in range(options.k):
        turn = ways[k % len(ways) :] + ways[: k % len(ways)]
        rounds.append({w: once(w, options.n, options.python, environment) for w in turn})
        print(k + 1, {w: round(m["first step"], 2) for w, m in rounds[-1].items()}, flush=True)
    sheet.page("recovery", __doc__, facts, body(rounds, ways), options.results)
    sheet.save(options.results / "recovery.json", {"circumstances": facts, "rounds": rounds})


if __name__ == "__main__":
    main()
