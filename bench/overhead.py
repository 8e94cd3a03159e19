"""What watching costs a training loop whose steps take some 4 to 80 ms.

jobs/steps.py (PyTorch, gloo, one all_reduce and one optimizer step a step) runs in alternating turns: without
allaboard (each rank in a session of its own, as launchers start them), under `allaboard run`, and without it
once more as a control that shows the machine's own noise; with networks of several widths, since watching
costs so many microseconds a step, whether that is short or long. Three figures come out of each:

- The direct one: within the ranks of a watched run a short block of steps with all that watches this loop,
  one without it, and one more without it as a control, in an order that is drawn alike on all ranks; each
  step has a batch of a loader, too. How much longer the middle step of the watched block took is what it
  costs where it runs, with the caches as they are; median over all rounds, with a bootstrap interval (95 %).
  Where a step is long the interval is wider than what is sought: what short steps show counts there as well.
  To it comes the CPU time of agent and reaper while the loop trains, for each rank.
- A sum of what can be counted: probe events a step x the cost of one event
  (a step, a collective, the value of a loss, a batch: what the watched call takes longer than the same
  call without us), measured in the ranks themselves in the same run (between real steps, or in a tight
  loop, whichever is dearer), plus agent and reaper.
  Between real steps the caches are cold, and so is all that measures there (but for the step's own event,
  which the loop has called a moment before, and is told too short by some microseconds); what the sum would
  be in a tight loop is the last row.
- Beside them the wall clock of whole runs: the ratio of step times, turn by turn, with a bootstrap interval
  of their median (95 %). On a shared machine it is wide; the control shows how wide.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

import sheet

from launch import shell_loop

JOB = str(sheet.JOBS / "steps.py")
LIMIT, AIM = 0.43, 0.2
DRAWS = 5000
TIGHT = "all, each event as in a tight loop (%)"
ADDED = ("a watched step takes longer by (µs)", "95 % from (µs)", "to (µs)")
KINDS = ("step", "operation", "loss", "batch")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far: of its threads by schedstat (ns), else by stat (ticks)."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks) / 1e9
    except OSError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(parent: int) -> int:
    """The only child of this process: the guard of the agent, or the reaper of the guard."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[0])


def awaited(file: Path, process: subprocess.Popen[bytes]) -> None:
    while not file.exists():
        if process.poll() is not None:
            sys.exit(f"the job ended with {process.returncode} before it wrote {file.name}")
        time.sleep(0.02)


def watched(words: list[str], marks: Path, n: int, environment: dict[str, str]) -> dict[str, float]:
    """The job under allaboard; CPU seconds of agent and reaper for each second of training."""
    run = ["run", "-n", n, "--run-dir", marks / "run", "--report", marks / "report.json"]
    with (marks / "output").open("wb") as output:
        process = subprocess.Popen(
            sheet.allaboard(*run, *words), env=environment, stdout=output, stderr=output, cwd=marks
        )
        awaited(marks / "ready", process)
        pids = {"agent": process.pid, "reaper": child_of(child_of(process.pid))}
        begin, before = time.monotonic(), {k: cpu_seconds(p) for k, p in pids.items()}
        awaited(marks / "done", process)
        seconds, after = time.monotonic() - begin, {k: cpu_seconds(p) for k, p in pids.items()}
        code = process.wait()
    findings = json.loads((marks / "report.json").read_text())["findings"]
    # The job does the same step for ever, so that its loss rightly stays where it is.
    if code != 0 or any(f["severity"] != "info" for f in findings):
        sys.exit(f"not a healthy run (exit code {code}):\n{(marks / 'output').read_text()}")
    return {k: (after[k] - before[k]) / seconds for k in pids}


def turn(way: str, width: int, options: Any, environment: dict[str, str]) -> dict[str, Any]:
    """One run of the job: its median step (s) of the rank that is slowest; under allaboard more."""
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as folder:
        marks = Path(folder)
        smaller = (min(options.widths) / width) ** 2  # as many steps as take as long
        block, rounds = (max(25, int(n * smaller)) for n in (options.block, options.rounds))
        words = [JOB, "--marks", folder, "--block", str(block), "--width"]
        words += [str(width), "--blocks", str(options.blocks)]
        cpu: dict[str, float] = {}
        if way == "on":
            words += ["--rounds", str(rounds), "--costs"]
            cpu = watched(words, marks, options.n, environment)
        else:
            with (marks / "output").open("wb") as output:
                shell_loop(options.n, options.python, words, environment, output, sessions=True)
        ranks = [json.loads(f.read_text()) for f in sorted(marks.glob("rank-*.json"))]
        if len(ranks) != options.n:
            sys.exit(f"{way}: {len(ranks)} of {options.n} ranks wrote their marks")
    step = max(median(r["blocks"]) for r in ranks)
    return {"step": step, "cpu": cpu, "ranks": ranks}


def counted(on: list[dict[str, Any]], n: int) -> dict[str, float]:
    """The sum of what can be counted, in per cent of the loop's time."""
    ranks = [r for t in on for r in t["ranks"] if r["costs"] is not None]
    if not ranks:
        sys.exit("the probe was not loaded in the ranks: nothing to count")
    step = median(t["step"] for t in on)
    done = [r["after"]["steps"] - r["before"]["steps"] for r in ranks]
    operations = [r["after"]["operations"] - r["before"]["operations"] for r in ranks]
    steps = mean(len(r["blocks"]) for r in ranks) * ranks[0]["block"]
    hot, between = (
        {k: median(r["costs"][f"{k}_{how}"] for r in ranks) for k in KINDS}
        for how in ("hot", "between")
    )
    each = {kind: max(hot[kind], between[kind]) for kind in KINDS}
    # One loss and one batch a step, whether the loop has a loader or not.
    times = dict.fromkeys(KINDS, 1.0)
    times |= {"step": mean(done) / steps, "operation": mean(operations) / steps}
    probe, tight = (sum(times[k] * cost[k] for k in KINDS) for cost in (each, hot))
    agent = median(t["cpu"]["agent"] for t in on)
    reaper = median(t["cpu"]["reaper"] for t in on)
    return {
        "step time (ms)": 1000 * step,
        "steps counted a step": times["step"],
        "operations counted a step": times["operation"],
        "one step event (µs)": 1e6 * each["step"],
        "one collective, in and out (µs)": 1e6 * each["operation"],
        "one look at a loss (µs)": 1e6 * each["loss"],
        "one batch (µs)": 1e6 * each["batch"],
        "probe, of a rank's time (%)": 100 * probe / step,
        "agent, of a core (%)": 100 * agent,
        "reaper, of a core (%)": 100 * reaper,
        "agent and reaper, for each rank (%)": 100 * (agent + reaper) / n,
        "all (%)": 100 * (probe / step + (agent + reaper) / n),
        TIGHT: 100 * (tight / step + (agent + reaper) / n),
    }


def direct(on: list[dict[str, Any]], counted: dict[str, float]) -> dict[str, float]:
    """What watching adds to a step within one process, and all in per cent of the step."""
    rounds = [r for t in on for rank in t["ranks"] for r in rank["rounds"]]
    apart, control = ([1e6 * (r[k] - r[1]) for r in rounds] for k in (0, 2))
    step, around = 1000 * counted["step time (ms)"], counted["agent and reaper, for each rank (%)"]
    (low, high), (below, above) = bootstrap(apart), bootstrap(control)
    return {
        "rounds": len(rounds),
        **dict(zip(ADDED, (median(apart), low, high), strict=True)),
        "control, a bare step by (µs)": median(control),
        "control, 95 % from (µs)": below,
        "control, to (µs)": above,
        "of a step (%)": 100 * median(apart) / step,
        "agent and reaper, for each rank (%)": around,
        "all (%)": 100 * median(apart) / step + around,
        "all, at the upper end (%)": 100 * high / step + around,
    }


def bootstrap(values: list[float]) -> list[float]:
    """The 95 % interval of the median, by drawing again with replacement."""
    draw = random.Random(1)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return [medians[int(0.025 * DRAWS)], medians[int(0.975 * DRAWS)]]


def body(turns: list[dict[str, Any]], n: int) -> tuple[str, dict[str, Any]]:
    """The tables of one width, and their figures."""
    sums = counted([t["on"] for t in turns], n)
    seen = direct([t["on"] for t in turns], sums)
    first = sheet.table(("within one process", "value"), seen.items())
    first += "\n" + sheet.table(("counted", "value"), sums.items())
    rows, figures = [], {}
    for name, way, base in (("on / off", "on", "off"), ("off / off", "control", "off")):
        values = [t[way]["step"] / t[base]["step"] for t in turns]
        figures[name] = {"median": median(values), "interval": bootstrap(values), "each": values}
        rows.append((name, f"{median(values):.4f}", *(f"{v:.4f}" for v in bootstrap(values))))
    second = sheet.table(("ratio of step times", "median", "95 % from", "to"), rows)
    return f"{first}\n{second}", {"within": seen, "counted": sums, "wall": figures}


def summary(of_width: dict[int, dict[str, Any]]) -> str:
    """A line for each width. What was added is known best where steps are short: there it is least of the
    noise; it is laid against the longer ones too."""
    first = next(iter(of_width.values()))["within"]
    rows = []
    for figures in of_width.values():
        seen, sums = figures["within"], figures["counted"]
        step, around = sums["step time (ms)"], sums["agent and reaper, for each rank (%)"]
        added = "{:.0f} ({:.0f} to {:.0f})".format(*(seen[k] for k in ADDED))
        share = first[ADDED[0]] / 10 / step + around
        told = judged(max(share, sums["all (%)"]))
        rows.append((step, added, share, sums["all (%)"], sums[TIGHT], told))
    head: tuple[str, ...] = (
        "step (ms)",
        "added, within one process (µs, 95 %)",
        "all, by the first line's (%)",
    )
    head += ("all, counted (%)", "counted, tight loop (%)", f"below {LIMIT} %")
    return sheet.table(head, rows)


def judged(share: float) -> str:
    if share <= AIM:
        return f"yes, and the aim of {AIM} %"
    return "yes" if share < LIMIT else "NO"


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=10, help="turns of off, on, control")
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument(
        "--block", type=int, default=200, help="steps a block, fewer for wider ones"
    )
    parser.add_argument("--blocks", type=int, default=15, help="blocks a run")
    parser.add_argument("--rounds", type=int, default=400, help="of short blocks, a watched run")
    parser.add_argument("--widths", type=int, nargs="+", default=[192, 576, 1152], metavar="W")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"turns": options.k, "ranks": options.n}
    environment = sheet.environment(options.python)
    turns: dict[int, list[dict[str, Any]]] = {width: [] for width in options.widths}
    for k, width in product(range(options.k), options.widths):
        order = ["off", "on", "control"]
        order = order[k % 3 :] + order[: k % 3]
        turns[width].append({way: turn(way, width, options, environment) for way in order})
        last = turns[width][-1]
        shown = {w: f"{1000 * t['step']:.2f} ms" for w, t in last.items()}
        print(k + 1, width, shown, last["on"]["cpu"], flush=True)
    of_width = {width: body(done, options.n) for width, done in turns.items()}
    text = summary({width: figures for width, (_, figures) in of_width.items()})
    for width, (tables, _) in of_width.items():
        text += f"\n## A network of width {width}\n\n{tables}"
    sheet.page("overhead", __doc__, facts, text, options.results)
    figures = {width: f for width, (_, f) in of_width.items()}
    for done in turns.values():
        for each in done:
            for rank in (r for t in each.values() for r in t["ranks"]):
                rank["rounds"] = len(rank["rounds"])
    kept = {"circumstances": facts, "figures": figures, "turns": turns}
    sheet.save(options.results / "overhead.json", kept)


if __name__ == "__main__":
    main()
