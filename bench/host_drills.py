"""How long faults between hosts take from the arrival of the last healthy worker to the finding.

Each drill runs k times on a real framework over network namespaces (`multihost_drills.run_host_drill`;
needs root).
Chosen are those whose fault can be proven at once: identity, world size, version, script, clock, name, other
program at the port, wrong first host, no interface, another job or secret, a link that is blocked (whose
trial waits 3 s for an answer). The time is that of the host that is told last. A fault that was not named
counts as infinite. What is told only when its timeout is over (a member that nobody has heard of, a refusal
at the meeting place, where the first may yet come) is not among them.
"""

from __future__ import annotations

import json
import os
from math import inf
from statistics import median
from typing import Any

import sheet
from drills import quantile

AT_ONCE = (
    "net-no-name", "same-rank", "world-sizes-differ", "order-differs", "net-web-server",
    "wrong-first-host", "net-wrong-interface", "net-other-job", "net-other-secret", "clock-off",
    "other-version", "net-other-script", "net-own-name-loopback", "net-data-ports-dropped",
)  # fmt: skip
TARGET = 5.0


def once(name: str, seed: int) -> dict[str, Any]:
    """One run as it is kept."""
    from multihost_drills.run_host_drill import rehearse

    load = os.getloadavg()[0]
    went = rehearse(name)
    return {
        "seed": seed,
        "load": round(load, 1),
        "rule": went.rule,
        "named": any(f.rule == went.rule for f in went.findings),
        "seconds": went.seconds,
        "right who": went.right_rank,
        "right exit": went.right_exit,
        "unexpected": [f.rule for f in went.others],
    }


def seconds(run: dict[str, Any]) -> float:
    return max(0.0, run["seconds"]) if run["seconds"] is not None else inf


def body(kept: dict[str, list[dict[str, Any]]]) -> str:
    rows = []
    for name, runs in kept.items():
        took, k = [seconds(r) for r in runs], len(runs)
        counts = [
            f"{sum(bool(r[w]) for r in runs)}/{k}" for w in ("named", "right who", "right exit")
        ]
        others = ", ".join(sorted({u for r in runs for u in r["unexpected"]})) or "none"
        loads = [r["load"] for r in runs]
        rows.append(
            (name, runs[0]["rule"], median(took), max(took), *counts, others, median(loads))
        )
    head = ("drill", "rule", "median (s)", "max (s)", "right rule", "right who", "right exit",
            "unexpected", "load")  # fmt: skip
    every = [seconds(r) for runs in kept.values() for r in runs]
    p50, p90 = quantile(every, 0.5), quantile(every, 0.9)
    met = p90 is not None and p90 <= TARGET
    said = f"{len(every)} runs: p50 {p50:.2g} s, p90 {p90:.2g} s, max {max(every):.2g} s"
    return f"{sheet.table(head, rows)}\n{said}. Within {TARGET:g} s at p90: {met}.\n"


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="runs of each drill")
    parser.add_argument("--only", nargs="+", default=AT_ONCE, metavar="NAME", help="these drills")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python)
    os.environ.update(sheet.environment(options.python))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    kept: dict[str, list[dict[str, Any]]] = {}
    for seed in range(options.seeds):
        for name in options.only:
            run = once(name, seed)
            kept.setdefault(name, []).append(run)
            print(name, seed, json.dumps(run), flush=True)
            sheet.save(
                options.results / "host_drills.json", {"circumstances": facts, "drills": kept}
            )
            sheet.page("host_drills", __doc__, facts, body(kept), options.results)


if __name__ == "__main__":
    main()
