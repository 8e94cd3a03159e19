"""What the roll call across hosts adds to a start: the time to the first training step.

Hosts are network namespaces of one machine, made for it (needs root), so that they share its cores: with
four hosts on two of them each second of CPU that a host spends is two. The same script on each, of PyTorch,
TensorFlow and JAX, started plainly (a command on each host, with the environment that a launcher would
give), by a real srun, mpirun and torchrun; bare, with `allaboard run` before the script, and bare once more
as a control, in turns whose order rotates; k rounds. A moment counts when the last rank has reached it, in
seconds since the commands were given. With allaboard the roll call is whole: every link is tried both ways,
and the hosts are compared. "findings" are all that the reports of the k rounds say, but for what they say of
the script's text. The control tells how much two equal starts differ on this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import sheet

from multihost_drills.contract import MEETING_PORT
from multihost_drills.run_host_drill import CLUSTER
from testbed import Bed, Process, missing, open_mpi, slurm

JOB = str(sheet.JOBS / "first_step.py")
MOMENTS = ("first line", "init done", "first step", "end")
FRAMEWORKS = ("torch", "tensorflow", "jax")
RANK = {
    "plain": "",
    "srun": "$SLURM_PROCID",
    "mpirun": "$OMPI_COMM_WORLD_RANK",
    "torchrun": "$RANK",
}
"""The ways of starting, and where each host's number is read."""
NEEDS: dict[str, tuple[str, ...]] = {"srun": slurm.NEEDS, "mpirun": open_mpi.NEEDS}
STORE = 29400
"""torchrun's own port, where the job's is another framework's."""
TARGET = 1.0
HOSTS = 4
"""Where no other number is asked for."""
CHANGES = ("bare", "allaboard", "control")


class Start:
    """One way of starting one framework's script on the hosts of a bed."""

    def __init__(self, bed: Bed, framework: str, way: str, python: str) -> None:
        self.bed, self.framework, self.way, self.python = bed, framework, way, python
        self.hosts = len(bed.hosts)
        self._slurm = slurm.Slurm(bed) if way == "srun" else None
        self._mpi = open_mpi.OpenMpi(bed) if way == "mpirun" else None

    def once(self, ours: bool) -> tuple[dict[str, float], list[str]]:
        """The moments of one start, each of the last rank, and what was found."""
        with tempfile.TemporaryDirectory(dir=self.bed.folder) as folder:
            begin = time.time()
            started = list(self._start(ours, folder))
            codes = [process.wait(300) for process in started]
            ranks = [json.loads(f.read_text()) for f in Path(folder).glob("rank-*.json")]
            if any(codes) or len(ranks) != self.hosts:
                sys.exit("\n".join(process.text() for process in started))
            reports = [json.loads(f.read_text()) for f in Path(folder).glob("run-*/report.json")]
        if ours and len(reports) != self.hosts:
            sys.exit(f"{len(reports)} reports of {self.hosts}")
        found = [f for r in reports for f in r["findings"] if f["stage"] != "config"]
        moments = {m: max(r[m] for r in ranks) - begin for m in MOMENTS}
        return moments, [f"{f['rule']} {f['summary']}" for f in found]

    def _start(self, ours: bool, folder: str) -> Iterator[Process]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
        clean |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        words = self._words(ours, folder)
        if self._slurm is not None:
            conf = {"SLURM_CONF": self._slurm.environment["SLURM_CONF"]}
            yield self.bed.start(
                "h0",
                ["srun", f"-N{self.hosts}", f"-n{self.hosts}", "--mpi=none", *words],
                clean | conf,
            )
        elif self._mpi is not None:
            passed = [w for n in ("PATH", "OMP_NUM_THREADS") for w in ("-x", f"{n}={clean[n]}")]
            yield self.bed.start(
                "h0", [*self._mpi.command, *passed, "-n", f"{self.hosts}", *words], clean
            )
        else:
            for number, host in enumerate(self.bed.hosts):
                yield self.bed.start(host, [*self._launcher(number), *words], clean)

    def _launcher(self, number: int) -> list[str]:
        if self.way == "plain":
            return ["env", f"NUMBER={number}"]
        port = MEETING_PORT if self.framework == "torch" else STORE
        where = ["--node-rank", str(number), "--master-addr", "h0", "--master-port", str(port)]
        words = [self.python, "-m", "torch.distributed.run", "--nnodes", str(self.hosts), *where]
        return [*words, "--nproc-per-node", "1", "--no-python"]

    def _words(self, ours: bool, folder: str) -> list[str]:
        """What runs on every host."""
        job = [JOB, "--marks", folder, "--framework", self.framework]
        before = shlex.join(sheet.allaboard("run")) + f" --run-dir {folder}/run-$(hostname)"
        command = f"{before if ours else shlex.quote(self.python)} {shlex.join(job)}"
        return ["bash", "-c", f"{self._exports()} exec {command}"]

    def _exports(self) -> str:
        """What a script reads of its place, from what the launcher gives."""
        number = RANK[self.way] or "$NUMBER"
        first = f"h0:{MEETING_PORT}"
        if self.framework == "tensorflow":
            workers = [f"{host}:{MEETING_PORT}" for host in self.bed.hosts]
            told = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker"}})
            begin, end = told[:-2], told[-2:]
            return f"export TF_CONFIG='{begin}, \"index\": '{number}'{end}';"
        if self.framework == "jax":
            return (
                f"export JAX_COORDINATOR_ADDRESS={first} JAX_NUM_PROCESSES={self.hosts} "
                f"JAX_PROCESS_ID={number};"
            )
        if self.way == "torchrun":
            return ""
        return (
            f"export RANK={number} WORLD_SIZE={self.hosts} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
            f"MASTER_ADDR=h0 MASTER_PORT={MEETING_PORT};"
        )


def measure(framework: str, way: str, hosts: int, k: int, python: str) -> dict[str, Any]:
    """k rounds of one framework and way."""
    rounds: list[dict[str, dict[str, float]]] = []
    found: list[str] = []
    with Bed(hosts, lifetime=3600) as bed:
        start = Start(bed, framework, way, python)
        for ours in (False, True):
            start.once(ours)  # into the page cache; not counted
        for number in range(k):
            turn = CHANGES[number % 3 :] + CHANGES[: number % 3]
            told = {}
            for name in turn:
                told[name], said = start.once(name == "allaboard")
                found += said
            rounds.append(told)
            print(framework, way, {n: round(told[n]["first step"], 2) for n in CHANGES}, flush=True)
    return {"rounds": rounds, "findings": found}


def added(rounds: list[dict[str, dict[str, float]]], moment: str, what: str) -> list[float]:
    """Seconds more than bare, of each round, in order of size; nothing where there was no such start."""
    return sorted(r[what][moment] - r["bare"][moment] for r in rounds if what in r)


def row(name: str, one: dict[str, Any], moment: str) -> tuple[object, ...]:
    rounds = one["rounds"]
    ours, control = added(rounds, moment, "allaboard"), added(rounds, moment, "control")
    return (
        *name.split("/"), len(rounds), median(r["bare"][moment] for r in rounds),
        median(r["allaboard"][moment] for r in rounds), median(ours), ours[0], ours[-1],
        *((median(control), control[0], control[-1]) if control else ("", "", "")),
        len(one["findings"]) if "findings" in one else "",
        one["circumstances"]["commit"], one["circumstances"]["load average before"][0],
    )  # fmt: skip


HEAD = ("framework", "way", "hosts", "rounds", "bare (s)", "allaboard", "added: median", "min", "max",
        "control: median", "min", "max", "findings", "commit", "load before")  # fmt: skip


def body(kept: dict[str, Any]) -> str:
    """A table for each of two moments."""
    names = sorted(
        kept, key=lambda n: (FRAMEWORKS.index((w := n.split("/"))[0]), [*RANK].index(w[1]), w[2])
    )
    parts = []
    for moment in ("init done", "first step"):
        rows = [row(name, kept[name], moment) for name in names]
        parts.append(f"Until {moment}:\n\n{sheet.table(HEAD, rows)}")
    met = [n for n in names if median(added(kept[n]["rounds"], "first step", "allaboard")) < TARGET]
    over = ", ".join(n for n in names if n not in met) or "none"
    said = sorted({f for n in names for f in kept[n].get("findings", ())})
    verdict = f"{len(met)} of {len(names)} ways; not: {over}"
    return (
        "\n".join(parts)
        + f"\nLess than {TARGET:g} s added to the first step, by the median: {verdict}.\n"
        + f"\nFound: {'; '.join(said) or 'nothing'}.\n"
    )


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("-k", type=int, default=5, help="rounds")
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--framework", nargs="+", default=FRAMEWORKS, choices=FRAMEWORKS)
    parser.add_argument("--way", nargs="+", default=list(RANK), choices=list(RANK))
    options = parser.parse_args()
    file = options.results / "joined.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    kept = {n: one for n, one in kept.items() if n.count("/") == 2}
    os.environ.update(sheet.environment(options.python))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
    for framework in options.framework:
        for way in options.way:
            if why := missing(*NEEDS.get(way, ())):
                print(f"{way}: {why}", flush=True)
                continue
            facts = sheet.circumstances(options.python)
            one = measure(framework, way, options.hosts, options.k, options.python)
            kept[f"{framework}/{way}/{options.hosts}"] = {"circumstances": facts, **one}
            sheet.save(file, kept)
            sheet.page("joined", __doc__, facts, body(kept), options.results)


if __name__ == "__main__":
    main()
