"""What every measurement shares: the python that it runs, the machine it ran on, the sheet it leaves.

A sheet is ``bench/results/NAME.md`` for people and ``NAME.json`` for programs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
JOBS = ROOT / "bench" / "jobs"
RESULTS = ROOT / "bench" / "results"
sys.path.insert(0, str(ROOT / "tests"))
"""The test bed and the drills between hosts live with the tests."""


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all measurements have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="the interpreter that has the frameworks; allaboard itself runs in this one",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the sheets")
    return parser


def environment(python: str) -> dict[str, str]:
    """Ours, with ``python`` as the activated environment, which is where allaboard runs scripts.

    Byte code is cached and threads are left to the launchers, as for most people.
    """
    folder = Path(python).absolute().parent
    left_out = ("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "RANK", "WORLD_SIZE", "TF_CONFIG")
    clean = {k: v for k, v in os.environ.items() if k not in left_out}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return clean | {"VIRTUAL_ENV": str(folder.parent), "PATH": path}


def allaboard(*words: object) -> list[str]:
    """The command ``allaboard WORDS``."""
    return [sys.executable, "-m", "allaboard", *map(str, words)]


def versions(python: str) -> dict[str, str]:
    """Python and the frameworks of that interpreter, without importing them."""
    code = (
        "import json, platform, importlib.metadata as m; d = {'python': platform.python_version()}\n"
        "for n in ('torch', 'tensorflow', 'tensorflow-cpu', 'jax'):\n"
        "    try: d[n] = m.version(n)\n"
        "    except m.PackageNotFoundError: pass\n"
        "print(json.dumps(d))"
    )
    found: dict[str, str] = json.loads(subprocess.check_output([python, "-c", code]))
    return found


def commit() -> str:
    """The last commit that changed what is measured; ``+`` where files differ from it."""
    measured = ("src", "bench/*.py", "bench/jobs", "examples")
    last = _git("log", "-1", "--format=%h", "--", *measured)
    return (last or "none") + ("+" if _git("status", "--porcelain", "--", *measured) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def circumstances(python: str) -> dict[str, Any]:
    """When, what and on which machine; take it before the measurement, for the load's sake."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cores": len(os.sched_getaffinity(0)),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": versions(python),
        "load average before": [round(x, 2) for x in os.getloadavg()],
        "command": _command(),
    }


def _command() -> str:
    """As it would be typed in the project's folder."""
    words = [f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    return "python " + shlex.join(words)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers are given as people read them."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if value == float("inf"):
            return "never"
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value).replace("|", "\\|")


def page(name: str, doc: str | None, facts: dict[str, Any], body: str, results: Path) -> None:
    """Writes ``NAME.md`` and prints its body. ``facts``: the circumstances and what else counts."""
    facts["load average after"] = [round(x, 2) for x in os.getloadavg()]
    results.mkdir(parents=True, exist_ok=True)
    about = "\n".join(f"- {key}: {_fact(value)}" for key, value in facts.items())
    text = f"# {name}\n\n{(doc or '').strip()}\n\n{body}\n## Circumstances\n\n{about}\n"
    (results / f"{name}.md").write_text(text)
    print(f"\n{body}\n{about}")


def save(file: Path, data: Any) -> None:
    """As JSON, whole or not at all: a measurement may be interrupted while it writes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(data, indent=1) + "\n")
    new.replace(file)


def _fact(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
