"""How long from the command to the first training step, and from where the time comes.

The same script (jobs/first_step.py, PyTorch DDP on gloo) is started by `allaboard run -n N`, with and without
`--warm` (one import for all ranks), by torchrun and by a bare loop of Popen, in turns whose order rotates; k
rounds. A moment counts when the last rank has reached it, in seconds since the command. Every round gives one
ratio to torchrun; the tables have their minimum, median and maximum. The first line alone is also measured
for one plain `python script` against `allaboard run script`, in the same rounds.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO

import sheet

MOMENTS = ("first line", "init done", "first step", "end", "command done")
JOB = str(sheet.JOBS / "first_step.py")
JOB_TOP = str(sheet.JOBS / "first_step_top.py")
"""The same with its imports at the top, for `--warm`. It has begun only when they are done: its first line is
not compared."""
TARGETS = (("first line", 0.3), ("init done", 0.93))
TARGET_MS = 150.0
WARM_TARGET = 0.55


def shell_loop(
    n: int,
    python: str,
    words: list[str],
    environment: dict[str, str],
    output: BinaryIO,
    sessions: bool = False,
) -> int:
    """What a shell script with ``&`` and ``wait`` does; with ``sessions``, each in one of its own, as
    launchers do: on a busy machine the kernel shares the processor between sessions."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            [python, *words],
            env=environment | job | {"RANK": str(r), "LOCAL_RANK": str(r), "OMP_NUM_THREADS": "1"},
            stdout=output,
            stderr=output,
            start_new_session=sessions,
        )
        for r in range(n)
    ]
    return max(process.wait() for process in started)


def start(way: str, n: int, python: str, marks: Path, environment: dict[str, str]) -> int:
    """Runs the job to its end in one way; returns the exit code."""
    words = [JOB, "--marks", str(marks)]
    output = (marks / "output").open("wb")
    if way == "shell loop":
        return shell_loop(n, python, words, environment, output)
    run = ["run", "--run-dir", marks / "run"]
    command = {
        "torchrun": [python, "-m", "torch.distributed.run", "--nproc-per-node", str(n), *words],
        "allaboard": sheet.allaboard(*run, "-n", n, *words),
        "python, one": [python, *words, "--first-line-only"],
        "allaboard --warm": sheet.allaboard(*run, "--warm", "-n", n, JOB_TOP, *words[1:]),
        "allaboard, one": sheet.allaboard(*run, *words, "--first-line-only"),
    }[way]
    return subprocess.run(
        command, env=environment, stdout=output, stderr=output, cwd=marks, check=False
    ).returncode


def once(way: str, n: int, python: str, environment: dict[str, str]) -> dict[str, float]:
    """The moments of one run, in seconds since the command, each of the last rank."""
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as folder:
        begin = time.time()
        code = start(way, n, python, Path(folder), environment)
        done = time.time() - begin
        ranks = [json.loads(f.read_text()) for f in Path(folder).glob("rank-*.json")]
        wanted = 1 if way.endswith("one") else n
        if code != 0 or len(ranks) != wanted:
            print((Path(folder) / "output").read_text(errors="replace"), file=sys.stderr)
            sys.exit(f"{way}: exit code {code}, {len(ranks)} of {wanted} ranks wrote their marks")
    reached = {m: max(r[m] for r in ranks) - begin for m in MOMENTS if m in ranks[0]}
    first = min(r["first line"] for r in ranks) - begin
    return reached | {"command done": done, "first line of the first rank": first}


def ratios(rounds: list[dict[str, Any]], way: str, base: str, moment: str) -> list[float]:
    """Smallest, median and largest of the ratios, round by round."""
    each = sorted(r[way][moment] / r[base][moment] for r in rounds)
    return [each[0], median(each), each[-1]]


def differences(rounds: list[dict[str, Any]], way: str, base: str) -> list[float]:
    """Of the first line (ms), round by round."""
    each = sorted(1000 * (r[way]["first line"] - r[base]["first line"]) for r in rounds)
    return [each[0], median(each), each[-1]]


def body(rounds: list[dict[str, Any]], ways: list[str]) -> str:
    """The four tables."""
    seconds = sheet.table(
        ("launcher", *MOMENTS),
        [
            (w, *(median(r[w][m] for r in rounds) if m in rounds[0][w] else None for m in MOMENTS))
            for w in ways
        ],
    )
    against = sheet.table(
        ("allaboard / torchrun", "min", "median", "max", "target", "met"),
        [
            (m, *(found := ratios(rounds, "allaboard", "torchrun", m)), *_judged(found[1], m))
            for m in MOMENTS
        ],
    )
    warm = sheet.table(
        ("allaboard --warm / torchrun", "min", "median", "max", "target", "met"),
        [
            (
                m,
                *(found := ratios(rounds, "allaboard --warm", "torchrun", m)),
                *_judged_warm(found[1], m),
            )
            for m in MOMENTS[1:]
        ],
    )
    added = sheet.table(
        ("first line later than", "min (ms)", "median", "max", "target", "met"),
        [
            (f"{base} ({way})", *(d := differences(rounds, way, base)), TARGET_MS, d[1] < TARGET_MS)
            for way, base in (("allaboard, one", "python, one"), ("allaboard", "shell loop"))
        ],
    )
    return f"Seconds since the command, median:\n\n{seconds}\n{against}\n{warm}\n{added}"


def _judged(value: float, moment: str) -> tuple[object, object]:
    target = dict(TARGETS).get(moment)
    return (None, None) if target is None else (target, value <= target)


def _judged_warm(value: float, moment: str) -> tuple[object, object]:
    return (WARM_TARGET, value <= WARM_TARGET) if moment == "init done" else (None, None)


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=5, help="rounds")
    parser.add_argument("-n", type=int, default=4, help="ranks")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k, "ranks": options.n}
    environment = sheet.environment(options.python)
    ways = [
        "allaboard",
        "allaboard --warm",
        "torchrun",
        "shell loop",
        "allaboard, one",
        "python, one",
    ]
    for way in ways:  # files into the page cache, byte code into its own; not counted
        once(way, options.n, options.python, environment)
    rounds: list[dict[str, Any]] = []
    for k in range(options.k):
        turn = ways[k % len(ways) :] + ways[: k % len(ways)]
        rounds.append({w: once(w, options.n, options.python, environment) for w in turn})
        print(k + 1, {w: round(m["first line"], 3) for w, m in rounds[-1].items()}, flush=True)
    sheet.page("launch", __doc__, facts, body(rounds, ways), options.results)
    sheet.save(options.results / "launch.json", {"circumstances": facts, "rounds": rounds})


if __name__ == "__main__":
    main()
