"""What the roll call across hosts adds to a start: the time to the first training step.

Four hosts (network namespaces of one machine, made for it; needs root). The same script on each,
started as a launcher would with the same environment: once plain, once as `allaboard run SCRIPT`, in
turns whose order alternates; k rounds. A moment counts when the last rank has reached it, in seconds
since the four commands were given. With allaboard the roll call is whole: every link is tried both
ways, and the hosts are compared.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import sheet

from allaboard.rehearse_hosts import CLUSTER, described
from allaboard.testbed import Bed

JOB = str(sheet.JOBS / "first_step.py")
MOMENTS = ("first line", "init done", "first step", "end")
TARGET = 1.0
HOSTS = 4


def once(bed: Bed, ours: bool, python: str) -> dict[str, float]:
    """The moments of one start, each of the last rank."""
    with tempfile.TemporaryDirectory(dir=bed.folder) as folder:
        begin = time.time()
        started = []
        for rank, host in enumerate(bed.hosts):
            environment = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
            environment |= described("torch", rank, HOSTS) | {"OMP_NUM_THREADS": "1"}
            words = [JOB, "--marks", folder]
            run = sheet.allaboard("run", "--run-dir", f"{folder}/run-{host}")
            started.append(
                bed.start(host, [*run, *words] if ours else [python, *words], environment)
            )
        codes = [process.wait(300) for process in started]
        ranks = [json.loads(f.read_text()) for f in Path(folder).glob("rank-*.json")]
        if any(codes) or len(ranks) != HOSTS:
            sys.exit("\n".join(process.text() for process in started))
    return {m: max(r[m] for r in ranks) - begin for m in MOMENTS}


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=8, help="rounds")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k, "hosts": HOSTS}
    rounds: list[dict[str, dict[str, float]]] = []
    with Bed(HOSTS, lifetime=3600) as bed:
        for ours in (False, True):
            once(bed, ours, options.python)  # into the page cache; not counted
        for k in range(options.k):
            turn = [("plain", False), ("allaboard", True)]
            if k % 2:
                turn.reverse()
            rounds.append({name: once(bed, ours, options.python) for name, ours in turn})
            print(k + 1, {n: round(m["first step"], 2) for n, m in rounds[-1].items()}, flush=True)
    added = {m: sorted(r["allaboard"][m] - r["plain"][m] for r in rounds) for m in MOMENTS}
    rows = [
        (m, median(r["plain"][m] for r in rounds), median(r["allaboard"][m] for r in rounds),
         each[0], median(each), each[-1])
        for m, each in added.items()
    ]  # fmt: skip
    head = ("moment", "plain (s)", "allaboard", "added: min", "median", "max")
    met = median(added["first step"]) < TARGET
    body = f"{sheet.table(head, rows)}\nLess than {TARGET:g} s added to the first step: {met}.\n"
    sheet.page("joined", __doc__, facts, body, options.results)
    sheet.save(options.results / "joined.json", {"circumstances": facts, "rounds": rounds})


if __name__ == "__main__":
    main()
