"""Noisy logs of runs that ended well: variations of the frameworks' own output, without a fault.

A log is the course of one run (as the framework or trainer words it), with a few of the warnings
that healthy runs of it print, under one of the prefixes that loggers and launchers put before each
line. A seed draws all of it, so that a repetition meets the same logs. No log of these may be
answered with an error, and none with exit code 1.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sheet

COUNT = 300
"""Logs that are made."""


def read_warnings() -> dict[str, list[str]]:
    """Return the warnings that healthy runs print, by framework, as their sources word them."""
    text = (Path(__file__).parent / "healthy_warnings.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    warnings: dict[str, list[str]] = {}
    going_on = False
    for line in lines:
        words = line.removesuffix("\\")
        if section := re.fullmatch(r"\[(any|torch|tensorflow|jax)\]", line):
            current = warnings.setdefault(section[1], [])
        elif going_on:
            current[-1] += "\n" + words
        else:
            current.append(words)
        going_on = line.endswith("\\")
    return warnings


def plain(draw: random.Random) -> list[str]:
    """Return the lines of a loop that prints its loss."""
    loss, lines = 2.3, []
    for step in range(0, draw.randint(4, 14) * 100, 100):
        loss *= draw.uniform(0.85, 0.99)
        lines.append(f"step {step} loss {loss:.4f} lr {0.001:.1e}")
    return [
        *lines,
        draw.choice(("training done", f"done in {draw.randint(9, 900)} s", "finished training")),
    ]


def trainer(draw: random.Random) -> list[str]:
    """Return the lines of transformers' Trainer."""
    total = draw.randint(3, 9)
    lines = [f"{{'loss': {2.0 / n:.4f}, 'learning_rate': {5e-5 / n:.2e}, 'epoch': {n / total:.2f}}}"
             for n in range(1, total + 1)]  # fmt: skip
    seconds = draw.uniform(20, 900)
    end = f"{{'train_runtime': {seconds:.4f}, 'train_loss': 0.7, 'epoch': 1.0}}"
    return [*lines, end, "100%|██████████| 90/90 [01:02<00:00,  1.44it/s]"]


def keras(draw: random.Random) -> list[str]:
    """Return the lines of Keras' fit."""
    epochs = draw.randint(2, 6)
    lines = []
    for epoch in range(1, epochs + 1):
        lines.append(f"Epoch {epoch}/{epochs}")
        lines.append(
            f"70/70 [==============================] - 4s 51ms/step - loss: {2.2 / epoch:.4f} - "
            f"accuracy: 0.71"
        )
    return [*lines, "evaluation: accuracy 0.91"]


def lightning(draw: random.Random) -> list[str]:
    """Return the lines of Lightning."""
    world = draw.choice((2, 4, 8))
    start = [
        f"Initializing distributed: GLOBAL_RANK: {r}, MEMBER: {r + 1}/{world}" for r in range(world)
    ]
    epochs = draw.randint(1, 4)
    bars = [
        f"Epoch {e}: 100%|██████████| 50/50 [00:05<00:00,  9.10it/s, train_loss={1.1 / (e + 1):.3f}]"
        for e in range(epochs)
    ]
    return [
        "GPU available: True (cuda), used: True",
        *start,
        *bars,
        f"`Trainer.fit` stopped: `max_epochs={epochs}` reached.",
    ]


def flax(draw: random.Random) -> list[str]:
    """Return the lines of a loop under JAX."""
    steps = draw.randint(3, 9)
    lines = [
        f"I0102 03:04:{n:02d}.000100 139 train.py:211] step: {n * 50} loss: {1.5 / (n + 1):.3f}"
        for n in range(steps)
    ]
    return [*lines, "I0102 03:05:00.000100 139 train.py:230] training is complete"]


COURSES: tuple[tuple[str, Callable[[random.Random], list[str]]], ...] = (
    ("torch", plain),
    ("torch", trainer),
    ("torch", lightning),
    ("tensorflow", keras),
    ("tensorflow", plain),
    ("jax", flax),
    ("jax", plain),
)
PREFIXES = ("", "", "", "[default0]:", "[rank1]: ", "(RayTrainWorker pid=411, ip=10.0.0.5) ", "trainer-0  | ",
    "[1,2]<stdout>:", "2025-01-02T03:04:05.000000Z ", "node3: ", "[pod/job-worker-1/pytorch] ")  # fmt: skip


def make_logs(count: int = COUNT) -> Iterator[tuple[str, str]]:
    """Yield a name and a log, so many of them."""
    known = read_warnings()
    for number in range(count):
        draw = random.Random(f"healthy log {number}")
        framework, course = draw.choice(COURSES)
        lines = course(draw)
        warnings = draw.sample((*known[framework], *known["any"]), draw.randint(1, 6))
        for warning in warnings:  # never the last words: the run goes on after each of them
            place = draw.randint(0, max(0, len(lines) - 2))
            lines[place:place] = warning.split("\n")
        prefix = draw.choice(PREFIXES)
        yield (
            f"{number:03d}-{framework}-{course.__name__}",
            "\n".join(prefix + line for line in lines) + "\n",
        )


def judge(count: int = COUNT) -> list[tuple[str, list[str]]]:
    """Return the logs that were answered with a finding, each with its findings."""
    from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
    from allaboard.rules.engine.catalogue import load_catalogue

    blamed = []
    with tempfile.TemporaryDirectory(prefix="allaboard-healthy-") as folder:
        for name, text in make_logs(count):
            path = Path(folder) / f"{name}.log"
            path.write_text(text)
            findings = diagnose_paths([path], load_catalogue()).findings
            if findings:
                blamed.append((name, [f"{f.severity} {f.rule} {f.summary}" for f in findings]))
    return blamed


def measure(facts: dict[str, Any], results: Path, count: int = COUNT) -> None:
    """Judge all logs, and leave the sheet."""
    blamed = judge(count)
    made = Counter(name.partition("-")[2] for name, _ in make_logs(count))
    hit = Counter(name.partition("-")[2] for name, _ in blamed)
    errors = sum(any(f.startswith("error") for f in findings) for _, findings in blamed)
    rows = [(kind, number, hit[kind]) for kind, number in sorted(made.items())]
    body = f"{count} healthy logs: {errors} with an error, {len(blamed)} with a finding.\n\n"
    body += sheet.table(("course", "logs", "with a finding"), rows)
    body += "".join(f"\n- {name}: {'; '.join(findings)}" for name, findings in blamed)
    sheet.save(
        results / "healthy_logs.json", {"circumstances": facts, "logs": count, "blamed": blamed}
    )
    sheet.page("healthy_logs", __doc__, facts, body + "\n", results)
