"""How long `allaboard check` takes: an environment, a large TF_CONFIG, a thousand manifests.

``python bench/check.py`` prints a table (median and slowest of several runs, in seconds, of whole
processes) and exits 1 where a target is missed; ``--write FILE`` writes it as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
TARGETS = {
    "environment, beyond `import msgspec`": 0.1,
    "TF_CONFIG of 10,000 tasks": 1.0,
    "1,000 manifests": 10.0,
}
MANIFEST = """apiVersion: v1
kind: Service
metadata: {{name: svc-{n}}}
spec:
  clusterIP: None
  selector: {{job-name: job-{n}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: job-{n}}}
spec:
  completions: 4
  parallelism: 4
  completionMode: Indexed
  template:
    spec:
      subdomain: svc-{n}
      restartPolicy: Never
      containers:
        - name: worker
          image: registry.example/train:1
          command: [torchrun, --nnodes=4, --rdzv-backend=c10d, train.py]
          env:
            - {{name: MASTER_ADDR, value: job-{n}-0.svc-{n}}}
            - {{name: MASTER_PORT, value: "29500"}}
            - {{name: WORLD_SIZE, value: "4"}}
"""


def seconds(command: list[str], runs: int, env: dict[str, str] | None = None) -> list[float]:
    """Wall times of the command; the first run, which fills the caches, is not counted."""
    taken = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, check=False)
        taken.append(time.perf_counter() - began)
        assert done.returncode in (0, 1), done.stderr.decode()
    return taken[1:]


def measure(folder: Path) -> dict[str, list[float]]:
    """Every case's times."""
    python, check = sys.executable, [sys.executable, "-m", "allaboard", "check"]
    plain = {"PATH": os.environ["PATH"]}
    four = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    base, environment = [], []
    for _ in range(RUNS):
        # In turns, so that other work on the machine slows both alike.
        base += seconds([python, "-c", "import msgspec"], 1, plain)
        environment += seconds(check, 1, {**plain, **four})
    workers = [f"worker-{i}.train.svc:2222" for i in range(10_000)]
    large = folder / "tf_config.json"
    task = {"type": "worker", "index": 9_999}
    large.write_text(json.dumps({"cluster": {"worker": workers}, "task": task}))
    paths = []
    for n in range(1000):
        paths.append(folder / f"job{n}.yaml")
        paths[-1].write_text(MANIFEST.format(n=n))
    return {
        "`import msgspec`": base,
        "environment": environment,
        "environment, beyond `import msgspec`": [
            t - b for t, b in zip(environment, base, strict=True)
        ],
        "TF_CONFIG of 10,000 tasks": seconds([*check, str(large)], 5, plain),
        "1,000 manifests": seconds([*check, *map(str, paths)], 3, plain),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="Markdown file for the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Path(folder))
    lines = ["| case | median (s) | slowest (s) | target (s) |", "|---|---|---|---|"]
    missed = []
    for case, taken in times.items():
        target = TARGETS.get(case)
        median = statistics.median(taken)
        lines.append(f"| {case} | {median:.3f} | {max(taken):.3f} | {target or ''} |")
        if target and median > target:
            missed.append(case)
    print("\n".join(lines))
    if given.write:
        head = (
            "# `allaboard check`: how long it takes\n\n"
            "Got by `python bench/check.py --write bench/results/check.md`: wall times of whole "
            f"processes, {RUNS} runs of the first two cases in turns (the third is the difference of "
            "each pair), 5 and 3 of the others, one run before each that is not counted.\n"
            f"{os.cpu_count()} cores, shared with other work; Python {platform.python_version()}; "
            f"load {os.getloadavg()[0]:.1f}.\n\n"
        )
        given.write.write_text(head + "\n".join(lines) + "\n")
    if missed:
        print("missed:", "; ".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
