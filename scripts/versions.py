"""Tries allaboard on other versions of the frameworks, or of Python: examples and drills, for real.

    python scripts/versions.py "tensorflow-cpu==2.20.0" "jax==0.7.2"
    python scripts/versions.py --python python3.12 "jax==0.6.2" --drills ""
    apt-get install python3-torch
    python scripts/versions.py --python /usr/bin/python3 --system "numpy<2" "scikit-learn<1.6"

Makes an environment of its own with these packages (and what the examples need), runs each example whose
framework is there under ``allaboard run``, then the drills of those frameworks, and prints a line each.
allaboard itself runs in the Python that this is called with; only the workers run in the other one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "torch": ["torch_digits.py", "torch_spawn.py", "torch_checkpoint.py"],
    "tensorflow": ["tf_digits.py", "tf_mirrored.py", "tf1_ps_digits.py", "tf_ps_digits.py"],
    "jax": ["jax_digits.py"],
}
OPTIONS = {
    "tf_mirrored.py": ["-n", "1"],
    "torch_spawn.py": [],
    "tf1_ps_digits.py": ["--ps", "1", "-n", "2"],
    "tf_ps_digits.py": ["--ps", "1", "-n", "2", "--chief"],
}
SHORT = {
    "tf1_ps_digits.py": ["--steps", "200"],
    "torch_checkpoint.py": ["--steps", "100", "--checkpoint", "{folder}/checkpoint.pt"],
}
"""Arguments of an example, where they are not ``--epochs 2``."""
DRILLS = {
    "torch": "killed asleep other-dtype stuck-in-data-loader wrong-rank never-comes",
    "tensorflow": "tf-killed tf-asleep tf-wrong-port tf-two-tasks ps-missing tf2-ps-killed",
    "jax": "",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="+", metavar="PACKAGE==VERSION")
    parser.add_argument("--python", default=sys.executable, help="of the workers")
    parser.add_argument("--system", action="store_true", help="use what is in that Python already")
    parser.add_argument("--drills", help="their names; those of the frameworks where left out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="allaboard-versions-") as name:
        folder = Path(name)
        too = ["--system-site-packages"] if given.system else []
        subprocess.run([given.python, "-m", "venv", *too, folder], check=True)
        python = folder / "bin" / "python"
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-cache-dir", "scikit-learn", *given.packages], check=True)
        return tried(folder, python, given.drills)


def tried(folder: Path, python: Path, drills: str | None) -> int:
    """Runs all of it; the number of what failed."""
    # As in an activated environment: scripts run in its Python.
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "VIRTUAL_ENV": str(folder), "PATH": path}
    failed = 0
    print(subprocess.run([python, "-V"], capture_output=True, text=True).stdout.strip())
    for framework, examples in EXAMPLES.items():
        words = [python, "-c", f"import {framework}; print({framework}.__version__)"]
        version = subprocess.run(words, capture_output=True, text=True)
        if version.returncode:
            continue
        print(f"{framework} {version.stdout.split()[-1]}", flush=True)
        for example in examples:
            run = ["run", *OPTIONS.get(example, ["-n", "2"]), "--run-dir", folder / example]
            short = [word.format(folder=folder) for word in SHORT.get(example, ["--epochs", "2"])]
            script = [ROOT / "examples" / example, *short]
            failed += told(example, [*run, *script], environment)
        names = drills if drills is not None else DRILLS[framework]
        for drill in names.split():
            failed += told(f"drill {drill}", ["drill", drill], environment)
    return failed


def told(name: str, words: list[object], environment: dict[str, str]) -> bool:
    """Runs one, and prints how it went; whether it failed."""
    command = [sys.executable, "-m", "allaboard", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    unseen = [line for line in done.stderr.splitlines() if "not seen:" in line]
    print(f"  {name}: {'passed' if not done.returncode else 'FAILED'}", *unseen, flush=True)
    if done.returncode:
        print("\n".join(f"    {line}" for line in (done.stdout + done.stderr).splitlines()[-12:]))
    return bool(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
