"""Precision and recall of the coordinator and its rules on simulated traces of many ranks.

The traces (bench/traces.py names every setting of the generator) run through the real state of a
job and the real catalogue under a fake clock; nothing but the reports of the agents is made up. A
faulty trace is right where the first finding names the guilty rank (of a slow link: ranks of its hosts
alone) and a rule of that fault; a healthy one where no error is said, and no warning but what is true of it
(that a slow rank is slow). The last column of the first table counts those found within the aim for a stall:
the larger of 5 s and 8 of the job's own median steps; what shows in medians of many steps is none. Results
are kept by commit in simulate.json, and an interrupted run goes on where it stopped. The intervals are
Wilson's (95 %).

This judges the logic, not the hooks: what a real framework shows is measured by bench/drills.py.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import sheet
import traces

Z = 1.959964


def wilson(right: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    p, z2 = right / of, Z * Z
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = Z * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def run(trace: traces.Trace) -> dict[str, Any]:
    """One trace through a job; what was said, and when after the fault (s)."""
    from allaboard.clock import FakeClock
    from allaboard.coordinator.job_state import JobState
    from allaboard.coordinator.settings import JobSettings
    from allaboard.protocol.commands import AnnounceFinding, SampleStacks, TraceCalls
    from allaboard.protocol.events import WorkerLaunched
    from allaboard.protocol.process_keys import split_process_key
    from allaboard.rules.engine.catalogue import load_catalogue

    clock = FakeClock()
    here = [r for r in range(trace.ranks) if not split_process_key(trace.pid(r))[0]]
    settings = JobSettings(launched=len(here), host="h0")
    job = JobState(settings, clock.now, load_catalogue().entries, clock.utc)
    started = [WorkerLaunched(worker=r, pid=trace.pid(r), launched_at=clock.now) for r in here]
    job.handle(clock.now, *started)
    job.handle(clock.now, *trace.looks(clock.now, 0.0), *trace.answers())
    start, said, busy, ticks, stop = clock.now, [], 0.0, 0, trace.seconds
    at, stands = 0.0, False
    while at < stop:
        clock.advance(traces.SOON if stands else traces.TICK)
        at = clock.now - start
        events = list(trace.looks(clock.now, at))
        began = time.perf_counter()
        commands = job.handle(clock.now, *events)
        looks = [c for c in commands if isinstance(c, SampleStacks)]
        stands = bool(looks) or (stands and job.status.view(clock.now).stalled)
        for look in looks:
            alive = [p for p in look.pids if trace.pids[p] not in trace.dead]
            commands += job.handle(clock.now, *(trace.stack(p, clock.now, at) for p in alive))
        for asked in [c for c in commands if isinstance(c, TraceCalls)]:
            commands += job.handle(clock.now, *(trace.trace(p, at) for p in asked.pids))
        busy += time.perf_counter() - began
        ticks += 1
        for command in commands:
            if isinstance(command, AnnounceFinding):
                found = command.finding
                said.append(
                    {
                        "rule": found.rule,
                        "severity": str(found.severity),
                        "certainty": str(found.certainty),
                        "ranks": [w.rank for w in found.who][:8],
                        "after": round(at - trace.begins, 2),
                        "summary": found.summary[:200],
                    }
                )
                stop = min(stop, at + 5.0)
    return {"said": said, "us": busy / ticks / trace.ranks * 1e6}


def judge(trace: traces.Trace, went: dict[str, Any]) -> dict[str, Any]:
    """Whether the first finding names the right rank and rule; a healthy trace's errors."""
    said = went["said"]
    kept = {
        "seed": trace.seed,
        "ranks": trace.ranks,
        "kind": trace.kind,
        "step": round(trace.step, 3),
        "us": round(went["us"], 1),
    }
    if not trace.faulty:
        true = traces.INCIDENTS[trace.kind]
        errors = [s for s in said if s["severity"] != "info" and s["rule"] not in true]
        notes = Counter(s["rule"] for s in said if s not in errors)
        return kept | {"right": not errors, "errors": errors, "notes": dict(notes)}
    first = next((s for s in said if s["severity"] in ("error", "warning")), None)
    rank = first is not None and bool(first["ranks"]) and trace.names >= set(first["ranks"])
    rule = first is not None and first["rule"] in traces.FAULTS[trace.kind]
    others = [s for s in said if not trace.names & set(s["ranks"]) and s["severity"] == "error"]
    return kept | {
        "found": first is not None,
        "rank": rank,
        "rule": rule,
        "right": rank and rule,
        "seconds": first["after"] if first is not None else None,
        "others": others[:3],
        "first": None if rank and rule else first,
    }


def quantile(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


def body(runs: list[dict[str, Any]]) -> str:
    faulty = [r for r in runs if r["kind"] in traces.FAULTS]
    healthy = [r for r in runs if r["kind"] not in traces.FAULTS]
    rows = []
    for kind in traces.FAULTS:
        mine = [r for r in faulty if r["kind"] == kind]
        took = [r["seconds"] if r["found"] else math.inf for r in mine]
        rows.append(
            (kind, len(mine), sum(r["found"] for r in mine), sum(r["rank"] for r in mine),
             sum(r["rule"] for r in mine), *(quantile(took, q) for q in (0.5, 0.9, 0.99)),
             None if kind in traces.MEDIANS else
             sum(t <= max(5.0, 8 * r["step"]) for t, r in zip(took, mine, strict=True)))
        )  # fmt: skip
    head = (
        "fault",
        "traces",
        "found",
        "right rank first",
        "right rule first",
        "p50 (s)",
        "p90 (s)",
        "p99 (s)",
        "in time",
    )
    text = sheet.table(head, rows)
    calm = [
        (kind, len(mine), sum(not r["right"] for r in mine),
         ", ".join(f"{k} {n}" for k, n in sum((Counter(r["notes"]) for r in mine), Counter()).items()))
        for kind in traces.INCIDENTS
        if (mine := [r for r in healthy if r["kind"] == kind])
    ]  # fmt: skip
    text += "\n" + sheet.table(
        ("healthy", "traces", "with a false finding", "true warnings and notes"), calm
    )
    hits = sum(r["right"] for r in faulty)
    false = sum(not r["right"] for r in healthy)
    said = sum(r["found"] for r in faulty) + false
    shares = [
        ("recall: first finding right in rank and rule", hits, len(faulty)),
        ("right rank", sum(r["rank"] for r in faulty), len(faulty)),
        ("precision: right among the traces in which something was said", hits, said),
        ("healthy traces without a false finding", len(healthy) - false, len(healthy)),
    ]
    lines = [
        (what, f"{n} of {of}", f"{n / of if of else 0:.2%}",
         "{:.2%} to {:.2%}".format(*wilson(n, of)))
        for what, n, of in shares
    ]  # fmt: skip
    text += "\n" + sheet.table(("figure", "traces", "share", "95 % interval"), lines)
    sizes = [
        (f"{n:,}", len(mine), quantile([r["us"] for r in mine], 0.5),
         (quantile([r["us"] for r in mine], 0.5) or 0.0) * n / 1e6)
        for n in sorted({r["ranks"] for r in runs})
        if (mine := [r for r in runs if r["ranks"] == n])
    ]  # fmt: skip
    size_head = (
        "ranks",
        "traces",
        "coordinator per rank and report (us, median)",
        "per report of all (s)",
    )
    return text + "\n" + sheet.table(size_head, sizes)


def of_all(kept: dict[str, Any]) -> str:
    """The results of each commit by themselves, the newest first."""
    newest = sorted(kept.items(), key=lambda one: one[1]["circumstances"]["date"], reverse=True)
    return "\n".join(f"## At {commit}\n\n{body(one['runs'])}" for commit, one in newest)


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--faulty", type=int, default=1000, help="traces with a fault")
    parser.add_argument("--healthy", type=int, default=1000)
    parser.add_argument("--redo", action="store_true", help="forget this commit's earlier results")
    given = parser.parse_args()
    facts = sheet.circumstances(given.python)
    file = Path(given.results) / "simulate.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if given.redo or facts["commit"].endswith("+"):
        kept.pop(facts["commit"], None)
    mine = kept.setdefault(facts["commit"], {"circumstances": facts, "runs": []})
    done = {(r["seed"], r["ranks"], r["kind"]) for r in mine["runs"]}
    plan = [
        traces.Trace(seed, given.ranks, kind)
        for kinds, many in ((traces.FAULTS, given.faulty), (traces.INCIDENTS, given.healthy))
        for seed, kind in zip(range(many), itertools.cycle(kinds), strict=False)
        if (seed, given.ranks, kind) not in done
    ]
    plan.sort(key=lambda trace: trace.seed)  # of both kinds, wherever it is interrupted
    for count, trace in enumerate(plan, 1):
        result = judge(trace, run(trace))
        mine["runs"].append(result)
        if not result["right"]:
            print(json.dumps(result), flush=True)
        if count % 20 == 0 or count == len(plan):
            sheet.save(file, kept)
            print(f"{count} of {len(plan)}", file=sys.stderr, flush=True)
    sheet.save(file, kept)
    sheet.page("simulate", __doc__, facts, of_all(kept), given.results)


if __name__ == "__main__":
    main()
