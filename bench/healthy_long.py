"""How often a job that trains for a minute or more without a fault is accused.

Scripts of examples/ with 2 to 4 ranks (or servers and workers) train for at least a minute each, several
jobs side by side, so that they take cores from each other. How much each script is given to do follows
from how long its last run took. What counts is findings of severity error; warnings are told beside it
(that programs are in each other's way is one, and true here). Results are kept by commit in
healthy_long.json: a measurement that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import healthy
import sheet

GROWS = {
    "jax_digits.py": ("--epochs", 60),
    "tf1_ps_digits.py": ("--steps", 3000),
    "tf_checkpoint.py": ("--steps", 400),
    "tf_digits.py": ("--epochs", 10),
    "tf_keras_digits.py": ("--epochs", 10),
    "tf_ps_digits.py": ("--epochs", 20),
    "torch_checkpoint.py": ("--steps", 1500),
    "torch_digits.py": ("--epochs", 60),
    "torch_spawn.py": ("--epochs", 60),
}
"""What makes a script train longer, and what it is given first."""
SERVERS = {
    "tf1_ps_digits.py": (["--ps", "1"], ["--ps", "2"]),
    "tf_ps_digits.py": (["--ps", "1", "--chief"],),
}
"""Options beside ``-n`` of those with parameter servers."""


class Amounts:
    """How much each script is given to do; shared by the jobs that run side by side."""

    def __init__(self, aim: float) -> None:
        self.aim = aim
        self.lock = threading.Lock()
        self.now = {name: float(first) for name, (_, first) in GROWS.items()}

    def took(self, name: str, amount: int, seconds: float) -> None:
        """A run with ``amount`` took so long; starting up, some 15 s, does not grow with it."""
        trained = max(5.0, seconds - 15.0)
        with self.lock:
            self.now[name] = max(1.0, amount * min(4.0, max(0.5, self.aim / trained)))


def words(name: str, amount: int, draw: random.Random) -> tuple[list[str], list[str]]:
    """Options of `allaboard run`, and arguments of the script."""
    arguments = [*healthy.ARGUMENTS.get(name, healthy.SHORT)]
    flag = GROWS[name][0]
    arguments[arguments.index(flag) + 1] = str(amount)
    ranks = draw.choice((2, 3, 4))
    if name == "torch_spawn.py":
        return [], [*arguments, "--nprocs", str(ranks)]
    if name in SERVERS:
        return [*draw.choice(SERVERS[name]), "-n", "2"], arguments
    return ["-n", str(ranks)], arguments


def body(runs: list[dict[str, Any]], least: float) -> str:
    """The verdict and the table."""
    long = [r for r in runs if r["seconds"] >= least]
    errors = sum(len(r["errors"]) for r in runs)
    failed = sum(r["exit code"] != 0 for r in runs)
    rows = []
    for name in sorted({r["script"] for r in long}):
        those = [r for r in long if r["script"] == name]
        others = sorted({f.partition(" ")[0] for r in those for f in r["findings"]})
        rows.append(
            (
                name,
                len(those),
                f"{median(r['seconds'] for r in those):.0f}",
                sum(len(r["errors"]) for r in those),
                ", ".join(others) or "none",
            )
        )
    loads = sorted(r["load"] for r in long) or [0.0]
    head = ("example", "runs", "median (s)", "errors", "rules of all findings")
    verdict = (
        f"{len(long)} healthy runs of at least {least:g} s ({len(runs) - len(long)} shorter): "
        f"{errors} findings of severity error, {failed} did not end well. "
        f"Load at their ends {loads[0]:.0f} to {loads[-1]:.0f}.\n"
    )
    return f"{verdict}\n{sheet.table(head, rows)}"


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=200, help="runs of at least --least seconds")
    parser.add_argument("--least", type=float, default=60.0, metavar="S")
    parser.add_argument("--beside", type=int, default=4, help="jobs side by side")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    facts = sheet.circumstances(given.python)
    environment = sheet.environment(given.python)
    file = given.results / "healthy_long.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    mine = kept.setdefault(facts["commit"], {"circumstances": facts, "runs": []})
    runs: list[dict[str, Any]] = mine["runs"]
    amounts, lock = Amounts(given.least), threading.Lock()
    for run in runs:
        amounts.took(run["script"], run["amount"], run["seconds"])

    def enough() -> bool:
        return bool(sum(r["seconds"] >= given.least for r in runs) >= given.k)

    def one(number: int) -> None:
        if enough():
            return
        draw = random.Random(number)
        name = sorted(GROWS)[number % len(GROWS)]
        amount = int(amounts.now[name])
        options, arguments = words(name, amount, draw)
        script = sheet.ROOT / "examples" / name
        done = healthy.start(script, environment, given.keep, options, arguments)
        amounts.took(name, amount, done["seconds"])
        done |= {"script": name, "options": options, "amount": amount, "load": os.getloadavg()[0]}
        with lock:
            runs.append(done)
            sheet.save(file, kept)
        print(
            len(runs),
            name,
            amount,
            *options,
            done["exit code"],
            done["findings"],
            done["seconds"],
            flush=True,
        )

    with ThreadPoolExecutor(given.beside) as pool:
        list(pool.map(one, range(len(runs), len(runs) + 3 * given.k)))
    sheet.page("healthy_long", __doc__, facts, body(runs, given.least), given.results)


if __name__ == "__main__":
    main()
