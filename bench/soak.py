"""Jobs with parameter servers under seeded schedules of kills and stops of every task.

What is done, and what must hold at the end of each job, stands in tests/zoo/test_soak.py: 60 s of kills
(SIGKILL) and stops (SIGSTOP), each after the task hurt before has come back; the job ends with the loss of
one that was not hurt, every return has its fault or says with whom it fell, lost steps are those that the
workers' own lines tell, and no process, port, file or shared memory is left. `on hosts` are such jobs with a
host for each task, in network namespaces (tests/zoo/test_soak_hosts.py: 45 s of kills and stops; TensorFlow 1
with one server, `--ps-snapshot 1`, and no checkpoint on disk). A row is a job that passed.
`fell` are tasks that came back because they fell with the one that was hurt; `back` are seconds from a
task's end until it was there again; `lost` are updates, for TensorFlow 2 those that were done again at the
most.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import sheet

sys.path[:0] = [str(sheet.ROOT / "tests"), str(sheet.ROOT / "tests" / "zoo")]
HEAD = (
    "job", "seed", "s", "load", "killed", "stopped", "fell", "rounds", "back (median)", "lost", "updates",
)  # fmt: skip


def row(name: str, seed: int, seconds: float, report: dict[str, Any]) -> tuple[Any, ...]:
    """The figures of one job, from its report."""
    own = [r["cause"] for r in report["returns"] if not r["fell_with"]]
    rounds = [r for r in report["rounds"] if r["again"]]
    own += [(r["cause"] or {"what": r["reason"]})["what"] for r in rounds]
    killed = sum("killed" in cause for cause in own)
    back = [r["seconds"] for r in report["returns"] if r["seconds"] is not None]
    lost = [r["lost"] for r in report["returns"]] + [r["repeated"] for r in report["rounds"]]
    updates = 2000 if name.startswith("tf1") else 3000
    return (
        name, seed, seconds, report.get("load", ""), killed, len(own) - killed,
        sum(bool(r["fell_with"]) for r in report["returns"]), len(rounds),
        median(back) if back else "", sum(n or 0 for n in lost), updates,
    )  # fmt: skip


def body(rows: list[tuple[Any, ...]]) -> str:
    faults = sum(r[4] + r[5] for r in rows)
    return f"{len(rows)} jobs, {faults} faults:\n\n{sheet.table(HEAD, rows)}"


def main() -> None:
    import test_soak
    import test_soak_hosts

    jobs = {name: (test_soak.soak, name) for name in test_soak.JOBS}
    jobs |= {f"{name} on hosts": (test_soak_hosts.soak, name) for name in test_soak_hosts.TASKS}
    parser = sheet.arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=7, help="schedules of each kind of job")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python)
    rows: list[tuple[Any, ...]] = []
    for seed in range(1, options.seeds + 1):
        for name, (soak, kind) in jobs.items():
            began, load = time.monotonic(), Path("/proc/loadavg").read_text().split()[0]
            with tempfile.TemporaryDirectory(prefix="allaboard-bench-") as folder:
                report = soak(Path(folder), kind, seed) | {"load": float(load)}
            rows.append(row(name, seed, round(time.monotonic() - began), report))
            print(json.dumps(rows[-1]), flush=True)
    sheet.page("soak", __doc__, facts, body(rows), options.results)
    sheet.save(options.results / "soak.json", {"circumstances": facts, "head": HEAD, "rows": rows})


if __name__ == "__main__":
    main()
