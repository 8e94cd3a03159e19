"""How long every drill takes from its fault to the finding that names it.

Each drill puts a fault into a job of a real framework, k times (`allaboard.drills.run_drill`). A seed draws
the step at which the fault begins, and the number of ranks, 2 to 8, where the fault does not need a number
of its own. A drill whose fault was not named counts as infinite. Results are kept by commit in drills.json:
a measurement that was interrupted goes on where it stopped; --redo begins anew.

Four groups are summed up separately, because they wait for different things: faults that can be proven
at once (a death, a contradiction); stalls (the job must first miss its own rhythm); rates, trends and
absences, which must be watched for a while to be told from chance (a slow rank, memory that runs out, a
server that has not started yet); and faults that are only reported after a timeout that was given on the
command line. Seconds are blank if the fault has no
moment of its own, such as a rank that is never started.
"""

from __future__ import annotations

import json
import os
import random
from math import ceil, inf
from pathlib import Path
from statistics import median
from typing import Any

import sheet

STEPS = (30, 150)
"""The fault begins between these steps of the guilty rank."""
BOUNDED = ("JOIN001", "JOIN004", "EXIT005")
GROUPS = ("provable at once", "stalls", "rates, trends, absences", "bounded by a given timeout")
WATCHED = ("SLOW", "PS", "RES002", "RES003", "RES004", "JOIN002")
AT_ONCE = ("PS001", "PS009", "PS010")
"""Rules of servers that need not watch: one has gone, or was never to be there."""
DOC = sheet.ROOT / "docs" / "drills.md"


def group(rule: str) -> str:
    """What its finding has to wait for."""
    if rule in BOUNDED:
        return GROUPS[3]
    if rule.startswith(WATCHED) and rule not in AT_ONCE:
        return GROUPS[2]
    return GROUPS[1] if rule.startswith("HANG") else GROUPS[0]


def step_of(name: str, seed: int, arguments: tuple[str, ...] = ()) -> int:
    """Drawn by drill and seed, so that a repetition meets the same fault; where its job has so few steps that
    the fault might come too late, from the first half of them."""
    first, last = STEPS
    if "--steps" in arguments:
        last = min(last, max(first, int(arguments[arguments.index("--steps") + 1]) // 2))
    return random.Random(f"{name} {seed}").randint(first, last)


def ranks_of(name: str, seed: int, least: int, most: int) -> int:
    """Drawn alike."""
    return random.Random(f"{name} {seed} ranks").randint(least, most)


def rehearse(name: str, seed: int) -> dict[str, Any]:
    """One run as it is kept."""
    from allaboard.contracts import MOST
    from allaboard.drills.run_drill import all_drills, rehearse

    drill = all_drills()[name]
    step = step_of(name, seed, drill.arguments)
    ranks = drill.workers or ranks_of(name, seed, drill.fewest, MOST)
    went = rehearse(name, step, ranks)
    return {
        "seed": seed,
        "step": step,
        "ranks": ranks,
        "rule": went.rule,
        "found": went.found,
        "seconds": went.seconds if went.found else None,
        "right rank": went.right_rank,
        "right exit": went.right_exit,
        "exit code": went.exit_code,
        "passed": went.passed,
        "unexpected": [f.rule for f in went.others],
        "findings": [f"{f.rule} {f.summary}" for f in went.findings],
        "output": "" if went.passed else went.output[-4000:],
    }


def seconds(runs: list[dict[str, Any]]) -> list[float]:
    """From fault to finding, infinite where it was not found; none where no start is known."""
    return sorted(
        inf if not r["found"] else max(0.0, r["seconds"])
        for r in runs
        if not r["found"] or r["seconds"] is not None
    )


def quantile(values: list[float], share: float) -> float | None:
    """The smallest value that this share does not exceed."""
    return sorted(values)[ceil(share * len(values)) - 1] if values else None


def row(name: str, runs: list[dict[str, Any]]) -> tuple[object, ...]:
    """One drill's line of the table."""
    took = seconds(runs)
    others = sorted({u for r in runs for u in r["unexpected"]})
    k = len(runs)
    return (
        name,
        runs[0]["rule"],
        group(runs[0]["rule"]),
        ", ".join(str(n) for n in sorted({r["ranks"] for r in runs})),
        median(took) if took else None,
        took[-1] if took else None,
        f"{sum(r['right rank'] for r in runs)}/{k}",
        f"{sum(r['found'] for r in runs)}/{k}",
        f"{sum(r['right exit'] for r in runs)}/{k}",
        ", ".join(others) or "none",
    )


def body(drills: dict[str, list[dict[str, Any]]]) -> str:
    """Both tables."""
    done = {name: runs for name, runs in sorted(drills.items()) if runs}
    head = ("drill", "rule", "group", "ranks", "median (s)", "max (s)", "right rank", "right rule")
    each = sheet.table((*head, "right exit", "unexpected"), [row(n, r) for n, r in done.items()])
    sums = []
    for name in GROUPS:
        of_group = [r for r in done.values() if group(r[0]["rule"]) == name]
        took = [s for runs in of_group for s in seconds(runs)]
        many = [quantile(took, share) for share in (0.5, 0.9, 0.99)]
        sums.append((name, len(of_group), len(took), *many, *right(of_group)))
    whole = list(done.values())
    took = [s for runs in whole for s in seconds(runs)]
    many = [quantile(took, share) for share in (0.5, 0.9, 0.99)]
    sums.append(("all", len(whole), len(took), *many, *right(whole)))
    head = ("group", "drills", "runs", "p50 (s)", "p90 (s)", "p99 (s)", "right rank", "right rule")
    return f"{sheet.table(head, sums)}\n{each}"


def right(drills: list[list[dict[str, Any]]]) -> tuple[str, str]:
    """Shares of runs in which the right rank, and the right rule, was named."""
    runs = [r for of_one in drills for r in of_one]
    if not runs:
        return "", ""
    ranks, rules = (sum(r[k] for r in runs) for k in ("right rank", "found"))
    return f"{ranks / len(runs):.1%}", f"{rules / len(runs):.1%}"


def options() -> Any:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3, metavar="K", help="runs of each drill")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these drills")
    parser.add_argument("--redo", action="store_true", help="forget this commit's earlier results")
    parser.add_argument("--doc", type=Path, default=DOC, help="the page that gets the table")
    return parser.parse_args()


def main() -> None:
    given = options()
    facts = sheet.circumstances(given.python)
    os.environ.update(sheet.environment(given.python))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    from allaboard.drills.run_drill import all_drills, lacks

    known = all_drills()
    if unknown := set(given.only) - set(known):
        raise SystemExit(
            f"no such drill: {', '.join(sorted(unknown))}; there are {', '.join(known)}"
        )
    file = given.results / "drills.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if given.redo or facts["commit"].endswith("+"):  # changed files have no name to go on under
        kept.pop(facts["commit"], None)
    mine = kept.setdefault(facts["commit"], {"circumstances": facts, "drills": {}, "lacking": {}})
    for seed in range(given.seeds):
        for name in given.only or known:
            runs = mine["drills"].setdefault(name, [])
            if why := lacks(known[name]):
                mine["lacking"][name] = why
            elif all(r["seed"] != seed for r in runs):
                runs.append(rehearse(name, seed))
                sheet.save(file, kept)
                last = runs[-1]
                print(
                    f"{name} #{seed}",
                    *(f"{k}={last[k]}" for k in ("passed", "seconds", "unexpected")),
                    flush=True,
                )
    publish(given, facts, mine)
    mine["circumstances"] = facts
    sheet.save(file, kept)


def publish(given: Any, facts: dict[str, Any], mine: dict[str, Any]) -> None:
    """The sheet, and the page of the documentation."""
    text = body(mine["drills"])
    if mine["lacking"]:
        lines = [f"- {name}: {why}\n" for name, why in mine["lacking"].items()]
        text += "\nNot staged on this machine:\n\n" + "".join(lines)
    sheet.page("drills", __doc__, facts, text, given.results)
    given.doc.parent.mkdir(parents=True, exist_ok=True)
    given.doc.write_text((given.results / "drills.md").read_text())


if __name__ == "__main__":
    main()
