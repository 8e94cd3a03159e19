"""What the proofs cost a roll call: the same one with a job's secret and without, in turn.

With a secret, each handshake proves it in both directions, and everything after it travels in records with a
proof each. The CPU seconds are those of the host where all meet, and of all simulated hosts together; see
rollcall. They depend little on who else uses the machine, seconds on the clock depend on it much, so that
none are given. "more per host" is the difference of the medians for each host.
"""

from __future__ import annotations

from statistics import median

import rollcall
import sheet

SIZES = (256, 1000, 4000)
KINDS = {"without a secret": "", "with a secret": rollcall.SECRET}


def body(found: dict[tuple[str, int], list[dict[str, float]]]) -> str:
    """The table of all sizes."""
    rows = []
    for (kind, size), rounds in found.items():
        middle = {k: median(r[k] for r in rounds) for k in ("cpu", "crowd", "mb")}
        plain = median(r["cpu"] for r in found["without a secret", size])
        more = (middle["cpu"] - plain) / size * 1e6 if KINDS[kind] else None
        best = min(r["cpu"] for r in rounds)
        rows.append((kind, size, middle["cpu"], best, middle["crowd"], middle["mb"], more))
    head = ("roll call", "hosts", "its own CPU (s)", "best", "the others' CPU (s)", "memory (MB)",
            "more per host (us)")  # fmt: skip
    return sheet.table(head, rows)


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=5, help="rounds")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k}
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for size in options.sizes:
        for k in range(options.k):
            for kind in list(KINDS)[:: 1 if k % 2 else -1]:
                one = rollcall.once("allaboard", size, False, options.python, KINDS[kind])
                found.setdefault((kind, size), []).append(one)
                print(size, kind, {a: round(b, 3) for a, b in one.items()}, flush=True)
    sheet.page("rollcall_proofs", __doc__, facts, body(found), options.results)
    kept = [{"way": kind, "hosts": size, "rounds": r} for (kind, size), r in found.items()]
    sheet.save(options.results / "rollcall_proofs.json", {"circumstances": facts, "found": kept})


if __name__ == "__main__":
    main()
