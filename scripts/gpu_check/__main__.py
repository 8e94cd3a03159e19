"""Tries allaboard on the GPUs of this machine: one to eight of them, within ten minutes.

    scripts/gpu-check --out gpu-check/          # all steps that this machine can run
    scripts/gpu-check --dry-run                 # which steps would run, and why others would not
    scripts/gpu-check --cpu --out gpu-check/    # the steps that also have a form without a GPU

Each step is a row of STEPS in steps.py: real training under ``allaboard run``, faults that are staged on the
GPU, and every instrument that is installed. It prints a table of what held, and writes results.json,
results.md (rows for docs/versions.md, with the hardware) and what the instruments printed, so that it can
become a test's sample. The frameworks are those of the Python that runs this; allaboard is this folder's.

Exit code: 0 if all steps that ran held, 1 if one did not, 3 if there is no GPU and nothing ran.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import TOTAL_S, Bench, Outcome
from machine import Machine, look_at_machine
from steps import STEPS, Step, why_not

NO_GPU_EXIT_CODE = 3
MIN_STEP_S = 20.0
"""Seconds that must be left for a step to begin."""
CORES_PER_STEP = 3


@dataclass(frozen=True)
class Result:
    """The outcome of one step, for the table."""

    name: str
    shows: str
    state: str
    detail: str
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What is to be run, and where it is kept."""

    out: Path
    machine: Machine
    cpu: bool
    deadline: float
    """When all must be over (s, CLOCK_MONOTONIC)."""

    def run_step(self, step: Step) -> Result:
        """Run a step; one that raises has not held, and one that hangs is ended after its time."""
        began = time.monotonic()
        if began > self.deadline - MIN_STEP_S:
            return Result(step.name, step.shows, "skipped", "no time was left", 0.0)
        bench = Bench(self.out, self.machine, "cpu" if self.cpu else "cuda", self.deadline)
        watchdog = threading.Timer(min(step.timeout_s, self.deadline - began), bench.close)
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
        print(f"{state:<8} {step.name:<16} {seconds:5.1f} s  {outcome.detail}", flush=True)
        return Result(step.name, step.shows, state, outcome.detail, seconds)


def run_steps(plan: Plan, steps: Sequence[Step], side_by_side: int) -> list[Result]:
    """Run every step that this machine can run: several at a time, then those that need the GPU alone."""
    results = {
        s.name: Result(s.name, s.shows, "skipped", reason, 0.0)
        for s in steps
        if (reason := why_not(s, plan.machine, plan.cpu))
    }
    for alone, count in ((False, side_by_side), (True, 1)):
        chosen = [s for s in steps if s.alone is alone and s.name not in results]
        with ThreadPoolExecutor(count) as pool:
            results |= {r.name: r for r in pool.map(plan.run_step, chosen)}
    return [results[s.name] for s in steps]


def plan_steps(plan: Plan, steps: Sequence[Step]) -> list[Result]:
    """Return which steps would run, and why others would not."""
    reasons = [(s, why_not(s, plan.machine, plan.cpu)) for s in steps]
    return [Result(s.name, s.shows, "skipped" if r else "would run", r, 0.0) for s, r in reasons]


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/gpu-check", description=(__doc__ or "").partition("\n")[0]
    )
    out = Path("gpu-check")
    parser.add_argument("--out", type=Path, default=out, help="folder for the results")
    parser.add_argument("--dry-run", action="store_true", help="only say which steps would run")
    parser.add_argument("--cpu", action="store_true", help="run the forms without a GPU")
    parser.add_argument("--step", action="append", default=[], choices=[s.name for s in STEPS])
    parser.add_argument(
        "--side-by-side",
        type=int,
        default=max(1, min(6, (os.cpu_count() or 1) // CORES_PER_STEP)),
        help="steps at a time (default: by the number of cores)",
    )
    parser.add_argument(
        "--seconds", type=float, default=TOTAL_S, help="begin no step later (default: %(default)s)"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps, print the table, write the results."""
    options = _parser().parse_args(arguments)
    machine = look_at_machine()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    plan = Plan(out, machine, options.cpu, time.monotonic() + options.seconds)
    steps = [s for s in STEPS if not options.step or s.name in options.step]
    print(f"{machine.hardware}; {', '.join(machine.frameworks)}; {', '.join(machine.programs)}")
    results = (
        plan_steps(plan, steps) if options.dry_run else run_steps(plan, steps, options.side_by_side)
    )
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
