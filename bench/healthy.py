"""How often a healthy job is blamed: every start of every example must end without a finding.

Each script of examples/ is started k times under `allaboard run`, with the options of the table
below (`-n 4` where it says nothing), for three epochs. Results are kept by commit in healthy.json:
a measurement that was interrupted goes on where it stopped, and --redo begins anew.
With --configurations FOLDER or --scripts FOLDER nothing is started: `check` judges what lies below it
(bench/checked_configurations.py, bench/checked_scripts.py). With --logs, `diagnose` judges noisy logs
of runs that ended well (bench/healthy_logs.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import checked_configurations
import checked_scripts
import healthy_logs
import sheet

RUN: dict[str, list[str]] = {
    "tf1_ps_digits.py": ["--ps", "2", "-n", "2"],
    "tf_mirrored.py": ["-n", "1"],
    "tf_ps_digits.py": ["--ps", "1", "-n", "2", "--chief"],
    "torch_spawn.py": [],  # it starts its ranks itself
}
"""Options of `allaboard run` where they are not ``-n 4``."""
SHORT = ["--epochs", "3"]
"""Arguments of the scripts: starts are what is measured, not accuracy."""
ARGUMENTS: dict[str, list[str]] = {
    "tf1_ps_digits.py": ["--steps", "300"],
    "torch_checkpoint.py": ["--steps", "100", "--checkpoint", "{folder}/checkpoint.pt"],
    "tf_checkpoint.py": ["--steps", "100", "--folder", "{folder}/checkpoints"],
}
"""... where they are others; ``{folder}`` is one that each start has to itself."""
LIMIT = 600.0
"""Seconds after which a start counts as failed."""


def start(
    script: Path,
    environment: dict[str, str],
    keep: Path,
    options: list[str] | None = None,
    arguments: list[str] | None = None,
) -> dict[str, Any]:
    """One run of one script to its end; what went wrong is left in ``keep``, to look into. Options of the
    run and arguments of the script are those of the tables where none are given."""
    with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as name:
        folder = Path(name)
        given = ARGUMENTS.get(script.name, SHORT) if arguments is None else arguments
        chosen = RUN.get(script.name, ["-n", "4"]) if options is None else options
        words = [script.absolute(), *(word.format(folder=folder) for word in given)]
        run = ["run", *chosen, "--run-dir", folder / "run"]
        begin = time.monotonic()
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                sheet.allaboard(*run, *words), env=environment, stdout=output, stderr=output
            )
            try:
                code = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
                code = -1
        report = folder / "run" / "report.json"
        found = json.loads(report.read_text())["findings"] if report.exists() else []
        bad = code != 0 or bool(found) or not report.exists()
        if bad:
            shutil.copytree(folder, keep / f"{script.stem}-{folder.name}", symlinks=True)
        return {
            "exit code": code,
            "report": report.exists(),
            "findings": [f"{f['rule']} {f['summary']}" for f in found],
            "errors": [f["rule"] for f in found if f["severity"] == "error"],
            "seconds": round(time.monotonic() - begin, 2),
            "output": (folder / "output").read_text(errors="replace")[-4000:] if bad else "",
        }


def scripts(folder: Path, only: list[str]) -> list[Path]:
    found = sorted(p for p in folder.glob("*.py") if not only or p.name in only)
    if not found:
        raise SystemExit(f"no example in {folder}" + (f" named {', '.join(only)}" if only else ""))
    return found


def row(name: str, starts: list[dict[str, Any]]) -> tuple[object, ...]:
    """One script's line of the table."""
    findings = [f for s in starts for f in s["findings"]]
    return (
        name,
        " ".join(RUN.get(name, ["-n", "4"])) or "(starts its own ranks)",
        len(starts),
        sum(s["exit code"] == 0 and s["report"] for s in starts),
        len(findings),
        ", ".join(sorted({f.partition(" ")[0] for f in findings})) or "none",
        median(s["seconds"] for s in starts),
    )


def body(examples: dict[str, list[dict[str, Any]]]) -> str:
    """The verdict and the table."""
    done = {n: s for n, s in sorted(examples.items()) if s}
    starts = [s for each in done.values() for s in each]
    findings = sum(len(s["findings"]) for s in starts)
    failed = sum(s["exit code"] != 0 or not s["report"] for s in starts)
    head = ("example", "options", "starts", "ended well", "findings", "rules", "median (s)")
    verdict = f"{len(starts)} healthy starts, {findings} findings, {failed} did not end well.\n"
    return f"{verdict}\n{sheet.table(head, [row(n, s) for n, s in done.items()])}"


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=20, help="starts of each example")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these scripts")
    parser.add_argument("--examples", type=Path, default=sheet.ROOT / "examples")
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()), help="for folders of bad starts"
    )
    parser.add_argument("--redo", action="store_true", help="forget this commit's earlier results")
    parser.add_argument(
        "--configurations",
        type=Path,
        metavar="FOLDER",
        help="judge these fetched configurations, start nothing",
    )
    parser.add_argument(
        "--scripts", type=Path, metavar="FOLDER", help="judge these fetched scripts, start nothing"
    )
    parser.add_argument(
        "--logs", action="store_true", help="judge noisy logs of healthy runs, start nothing"
    )
    given = parser.parse_args()
    facts = sheet.circumstances(given.python)
    if given.logs:
        healthy_logs.measure(facts, given.results)
        return
    if given.scripts is not None:
        checked_scripts.measure(given.scripts, facts, given.results)
        return
    if given.configurations is not None:
        checked_configurations.measure(given.configurations, facts, given.results)
        return
    environment = sheet.environment(given.python)
    file = given.results / "healthy.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if given.redo or facts["commit"].endswith("+"):  # changed files have no name to go on under
        kept.pop(facts["commit"], None)
    mine = kept.setdefault(facts["commit"], {"circumstances": facts, "examples": {}})
    for k in range(given.k):
        for script in scripts(given.examples, given.only):
            starts = mine["examples"].setdefault(script.name, [])
            if len(starts) > k:
                continue
            starts.append(start(script, environment, given.keep))
            sheet.save(file, kept)
            last = starts[-1]
            print(
                script.name, k + 1, last["exit code"], last["findings"], last["seconds"], flush=True
            )
    mine["circumstances"] = facts
    sheet.save(file, kept)
    sheet.page("healthy", __doc__, facts, body(mine["examples"]), given.results)


if __name__ == "__main__":
    main()
