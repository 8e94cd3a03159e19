"""How long the roll call of many hosts takes, and what it needs, on this one machine.

The host where all meet is a process of its own: the agent's own listener, state and all rules. The
other hosts are simulated over real loopback sockets, thousands in each of a few processes: they speak
the whole protocol (proof of the secret, declaration, fingerprint, links as they were asked for,
verdict). Beside it, in the same run, PyTorch's TCPStore (libuv), in two ways. "TCPStore, links too"
exchanges what the roll call does: each host tells the same facts under a key of its own and counts itself,
gets the list of those that it is to try, tells what it met, and waits for the verdict; rank 0 reads all.
"TCPStore" leaves the links out. In neither is there a proof, and nothing is compared. What a simulated host
is going to tell is written before it comes, in all ways, but for its clock and its proof.
Seconds are from the moment at which the last host began to connect; they
include the simulated hosts' own work, which takes its share of the same cores. The CPU seconds are those of
the host where all meet (of the store) alone, and depend less on who else uses the machine; beside them
those of all simulated hosts together.

"one missing": one host never comes; seconds from the end of the timeout to the finding on every host.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import sheet

SIZES = (256, 1000, 4000, 12_500)
TARGETS = {4000: 1.0, 12_500: 3.0}
MEMORY = 150.0
CROWDS = 2
MISSING = "one missing"
WAYS = {
    "allaboard": "allaboard",
    MISSING: "allaboard",
    "TCPStore, links too": "links",
    "TCPStore": "store",
}
"""Each row's name, and what the jobs call its way."""
TIMEOUT = 5.0
SECRET = "the job's secret"


def without_name_server() -> list[str]:
    """What a TCPStore is run by: it asks for the name of each client, and would wait for a server."""
    if os.geteuid() or shutil.which("unshare") is None:
        return []
    file = Path(tempfile.gettempdir()) / "allaboard-bench-nsswitch"
    file.write_text("hosts: files\n")
    bind = f'mount --bind {file} /etc/nsswitch.conf && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", bind, "sh"]


class Ended(Exception):
    """A part of it ended early; the message says what it wrote."""


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    text = process.stdout.readline()
    if not text.startswith("{"):
        raise Ended(f"{process.args!r}: {text!r}")
    found: dict[str, Any] = json.loads(text)
    return found


def once(way: str, size: int, missing: bool, python: str, secret: str = SECRET) -> dict[str, float]:
    """One roll call; without proofs where the secret is empty."""
    leads = ["rollcall_leader.py", str(size), str(TIMEOUT if missing else 1000)]
    words = leads if way == "allaboard" else ["rollcall_store.py", str(size), way]
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [python, str(sheet.JOBS / words[0]), *words[1:]]
        if words[0] == "rollcall_store.py":
            command = [*without_name_server(), *command]
        pipe = subprocess.PIPE
        env = os.environ | {"ROLLCALL_SECRET": secret}
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env))
        return started[-1]

    try:
        leader = start(*words)
        port = _line(leader)["port"]
        last = size - 1 if missing else size
        cuts = [1 + (last - 1) * i // CROWDS for i in range(CROWDS + 1)]
        crowds = [
            start("rollcall_members.py", way, str(port), str(size), str(a), str(b))
            for a, b in itertools.pairwise(cuts)
        ]
        for crowd in crowds:
            assert crowd.stdout is not None and crowd.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [_line(crowd) for crowd in crowds]
        decided = _line(leader)
    finally:
        for process in started:
            process.kill()
            process.wait()
    arrived, heard = max(t["arrived"] for t in told), max(t["verdict"] for t in told)
    return {
        "coming": arrived - min(t["began"] for t in told),
        "roster": decided["full"] - arrived,
        "decided": decided["decided"] - arrived,
        "verdict": heard - arrived - (TIMEOUT if missing else 0.0),
        "cpu": decided["cpu"],
        "crowd": sum(t["cpu"] for t in told),
        "mb": decided["mb"],
    }


def body(found: dict[tuple[str, int], list[dict[str, float]]]) -> str:
    """The table of all sizes, and whether the targets were met."""
    rows = []
    for (way, size), rounds in found.items():
        middle = {k: median(r[k] for r in rounds) for k in rounds[0]}
        target = TARGETS.get(size) if way == "allaboard" else None
        best = min(r["verdict"] for r in rounds)
        met = None if target is None else middle["verdict"] <= target
        rows.append((way, size, middle["coming"], middle["roster"], middle["verdict"], best,
                     middle["cpu"], middle["crowd"], middle["mb"], target, met))  # fmt: skip
    head = ("way", "hosts", "coming (s)", "full roster after (s)", "verdict on all (s)", "best",
            "its own CPU (s)", "the others' CPU (s)", "memory (MB)", "target (s)", "met")  # fmt: skip
    return sheet.table(head, rows)


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=3, help="rounds")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    facts = sheet.circumstances(options.python) | {"rounds": options.k, "processes": CROWDS + 1}
    ways = tuple(WAYS)
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for size in options.sizes:
        for k in range(options.k):
            turn = k % len(ways)
            for name in ways[turn:] + ways[:turn]:
                try:
                    one = once(WAYS[name], size, name == MISSING, options.python)
                except Ended as error:
                    sys.exit(str(error))
                found.setdefault((name, size), []).append(one)
                print(size, name, {a: round(b, 3) for a, b in one.items()}, flush=True)
    order = dict(sorted(found.items(), key=lambda i: (ways.index(i[0][0]), i[0][1])))
    sheet.page("rollcall", __doc__, facts, body(order), options.results)
    kept = [{"way": way, "hosts": size, "rounds": r} for (way, size), r in order.items()]
    sheet.save(options.results / "rollcall.json", {"circumstances": facts, "found": kept})


if __name__ == "__main__":
    main()
