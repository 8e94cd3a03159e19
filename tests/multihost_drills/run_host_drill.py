"""Runs a host drill: a real job over the hosts of a test bed, and what each host said judged."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from allaboard.blackbox.reader import OpenBox
from allaboard.drills.run_drill import JOBS, Rehearsal
from allaboard.facts import Finding, Phase, Stage, Who
from allaboard.launch.script_interpreter import script_interpreter
from allaboard.plugins import tables_by_name
from multihost_drills import families
from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed import Bed, Process, missing

LIMIT = 150.0
"""Seconds that a drill may take in all."""
OFTEN = 0.05
STEPS = 30
"""Steps that every worker does before something is done to the network of a job that trains."""
SCRIPTS = {"torch": "torch_ddp.py", "tensorflow": "tf_mwms.py", "jax": "jax_psum.py"}
SERVED = "tf1_ps.py"
"""The job of hosts that have roles."""
CLUSTER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "TF_CONFIG", "JAX_", "SLURM_", "OMPI_",
           "PMI_", "PMIX_", "TORCHELASTIC_", "ALLABOARD")  # fmt: skip


@cache
def all_host_drills() -> dict[str, HostDrill]:
    """Return every host drill by its name. Raises TypeError if a family does not load."""
    return tables_by_name(families, "DRILLS", HostDrill)


def lacks(drill: HostDrill) -> str:
    """Why this machine cannot stage it; "" where it can."""
    return missing(*drill.needs)


def rehearse(name: str) -> Rehearsal:
    """Stages one host drill. Raises CannotMake where no bed can be made."""
    return stage(name, all_host_drills()[name])


def stage(name: str, drill: HostDrill) -> Rehearsal:
    """Stages this one, whether it is in the room or not. Raises CannotMake where no bed can be made."""
    with Bed(drill.hosts, lifetime=LIMIT + 60) as bed:
        return _Stage(name, drill, bed).run()


def described(
    framework: str, index: int, hosts: int, roles: tuple[str, ...] = ()
) -> dict[str, str]:
    """What a launcher would put into the environment of the one worker of this host; ``roles`` are the
    tasks of all hosts where they have different ones."""
    first = f"h0:{MEETING_PORT}"
    if framework == "tensorflow":
        cluster: dict[str, list[str]] = {}
        for i, job in enumerate(roles or ("worker",) * hosts):
            if job != "evaluator":  # it stands beside the cluster
                cluster.setdefault(job, []).append(f"h{i}:{MEETING_PORT}")
        mine = roles[index] if roles else "worker"
        place = cluster[mine].index(f"h{index}:{MEETING_PORT}") if mine in cluster else 0
        task = {"cluster": cluster, "task": {"type": mine, "index": place}}
        return {"TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "2"}
    if framework == "jax":
        return {
            "JAX_COORDINATOR_ADDRESS": first,
            "JAX_NUM_PROCESSES": str(hosts),
            "JAX_PROCESS_ID": str(index),
        }
    return {
        "RANK": str(index),
        "WORLD_SIZE": str(hosts),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "h0",
        "MASTER_PORT": str(MEETING_PORT),
    }


class _Host:
    """One host's run, seen from outside."""

    def __init__(self, bed: Bed, index: int, process: Process, run: Path, plain: bool) -> None:
        self.index = index
        self.process = process
        self.run = run
        self.plain = plain
        self.arrived: float | None = None
        self.ended: float | None = None
        self.found: dict[str, float] = {}
        self._bed = bed
        self._box: OpenBox | None = None

    def look(self, now: float) -> None:
        """Notes when its worker came to init, when each rule spoke, and when it ended."""
        if self.ended is None and self.process.poll() is not None:
            self.ended = now
        if self.arrived is None and self._phase() >= Phase.ARRIVED:
            self.arrived = now
        for finding in self.findings():
            self.found.setdefault(finding.rule, now)

    def findings(self) -> list[Finding]:
        found = [e["finding"] for e in self._entries() if e.get("kind") == "finding"]
        return [msgspec.convert(each, Finding) for each in found]

    def reported(self) -> list[Finding]:
        """The findings of its report, those of its journal while there is none yet."""
        report = self.run / "report.json"
        if not report.exists():
            return self.findings()
        return [msgspec.convert(f, Finding) for f in json.loads(report.read_text())["findings"]]

    @property
    def left_behind(self) -> bool:
        return any(
            self._bed.path(f"h{self.index}", str(e["boxes"])).exists()
            for e in self._entries()
            if "boxes" in e
        )

    def trained(self) -> bool:
        """Whether its worker has done some steps."""
        self._phase()
        return self._box is not None and self._box.read_snapshot().step >= STEPS

    def _phase(self) -> int:
        if self._box is None:
            for entry in self._entries():
                if entry.get("kind") == "worker":
                    folder = self._bed.path(f"h{self.index}", str(entry["boxes"]))
                    with contextlib.suppress(OSError, ValueError):
                        self._box = OpenBox(folder / f"{entry['pid']}.box")
        return self._box.read_snapshot().phase if self._box is not None else Phase.LAUNCHED

    def _entries(self) -> list[dict[str, object]]:
        journal = self.run / "journal.jsonl"
        if not journal.exists():
            return []
        whole = journal.read_bytes().rpartition(b"\n")[0].splitlines()
        return [msgspec.json.decode(line) for line in whole]


class _Stage:
    def __init__(self, name: str, drill: HostDrill, bed: Bed) -> None:
        self.name = name
        self.drill = drill
        self.bed = bed
        self.hosts: list[_Host] = []
        self.began = time.monotonic()
        self.changed: float | None = None
        self.given_up = False

    def run(self) -> Rehearsal:
        drill = self.drill
        if drill.arrange is not None:
            drill.arrange(self.bed)
        waiting = [i for i in range(drill.hosts) if i not in drill.absent]
        while waiting or self._goes_on():
            now = time.monotonic()
            for index in [i for i in waiting if now - self.began >= drill.late.get(i, 0.0)]:
                waiting.remove(index)
                self.hosts.append(self._start(index))
            for host in self.hosts:
                host.look(now)
            if drill.then is not None and self.changed is None and self._train():
                drill.then(self.bed)
                self.changed = time.monotonic()
            time.sleep(OFTEN)
        for host in self.hosts:
            host.look(time.monotonic())
        rehearsal = self._judge()
        for host in self.hosts:
            host.process.kill()
        return rehearsal

    def _train(self) -> bool:
        """Whether all who do steps have: who serves does none."""
        roles = self.drill.roles
        first = "chief" if "chief" in roles else "worker"
        at_it = [h for h in self.hosts if not roles or roles[h.index] == first]
        return len(self.hosts) == self.drill.hosts and all(h.trained() for h in at_it)

    def _goes_on(self) -> bool:
        self.given_up = time.monotonic() - self.began > LIMIT
        if self.given_up:
            return False
        running = [h for h in self.hosts if h.process.poll() is None]
        expects = self.drill.expects
        told = all(expects in h.found for h in self._listeners())
        if running and told and not self.drill.ends:
            for host in running:
                host.process.send_signal(signal.SIGKILL if host.plain else signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    host.process.wait(10)
            return False
        # Who has no allaboard hangs for ever: that is what the drill is about.
        return any(not h.plain for h in running) or (bool(running) and not expects)

    def _start(self, index: int) -> _Host:
        drill = self.drill
        run = self.bed.folder / f"run-h{index}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
        environment.update(
            described(drill.framework, index, drill.hosts, drill.roles), OMP_NUM_THREADS="1"
        )
        if drill.environment is not None:
            environment = drill.environment(index, environment)
        usual = SERVED if drill.roles else SCRIPTS[drill.framework]
        words = [str(JOBS / drill.scripts.get(index, usual)), *drill.arguments]
        if index in drill.faults:
            words += ["--fault", drill.faults[index], "--guilty", str(index)]
        plain = index in drill.plain
        if plain:
            words = [script_interpreter(), *words]
        else:
            ours = [sys.executable, "-m", "allaboard", "run", "--run-dir", str(run)]
            options = drill.other_options.get(index, drill.options)
            words = [*ours, "--grace", "2", *options, *words]
        process = self.bed.start(f"h{index}", words, environment)
        return _Host(self.bed, index, process, run, plain)

    def _listeners(self) -> Iterator[_Host]:
        """The hosts that must be told."""
        for host in self.hosts:
            if not host.plain and (not self.drill.on or host.index in self.drill.on):
                yield host

    def _judge(self) -> Rehearsal:
        drill = self.drill
        ours = [h for h in self.hosts if not h.plain]
        reports = {h.index: h.reported() for h in ours}
        named = {h.index: _named(reports[h.index], drill.expects) for h in self._listeners()}
        # Of a host without allaboard the code counts where nothing is wrong.
        judged = self.hosts if not drill.expects else ours
        codes = {h.index: h.process.poll() for h in judged}
        spoken = {f.rule: f for found in reports.values() for f in found}
        others = [
            f
            for rule, f in spoken.items()
            # The drill's job is a script like others; what its text lets expect is not the drill.
            if rule not in (drill.expects, *drill.allowed) and f.stage is not Stage.CONFIG
        ]
        found = not drill.expects or (bool(named) and all(named.values()))
        blamed = [{w for f in findings for w in map(_number, f.who)} for findings in named.values()]
        seconds = self._seconds()
        quick = not drill.expects or seconds is None or seconds <= drill.within
        wrong = [c for c in codes.values() if c not in drill.exit_codes]
        return Rehearsal(
            drill=self.name,
            rule=drill.expects or "no finding",
            found=found and quick and self._said(),
            right_rank=not drill.expects or all(b == set(drill.blames) for b in blamed),
            seconds=seconds,
            exit_code=next((c if c is not None else -1 for c in wrong), drill.exit_codes[0]),
            right_exit=not self.given_up and (not drill.ends or not wrong) and self._bounded(),
            others=tuple(others),
            findings=tuple(spoken.values()),
            output=self._output(codes, reports),
            left_behind=drill.ends and any(h.left_behind for h in ours),
        )

    def _seconds(self) -> float | None:
        """From the change of the network, else from the last arrival of a worker before it, to the
        finding, on the host that was last told."""
        told = [h.found.get(self.drill.expects) for h in self._listeners()]
        if not self.drill.expects or not told or None in told:
            return None
        last = max(t for t in told if t is not None)
        if self.changed is not None:
            return last - self.changed
        before = [h.arrived for h in self.hosts if h.arrived is not None and h.arrived <= last]
        return last - max(before, default=self.began)

    def _said(self) -> bool:
        """Whether all who must be told were told in the words that the drill asks for."""
        return all(re.search(self.drill.says, h.process.text()) for h in self._listeners())

    def _bounded(self) -> bool:
        """Whether all ended as soon after the last arrival as the drill asks."""
        if not self.drill.bound:
            return True
        arrived = max((h.arrived for h in self.hosts if h.arrived is not None), default=self.began)
        ends = [h.ended for h in self.hosts if not h.plain]
        return all(e is not None and e - arrived <= self.drill.bound for e in ends)

    def _output(self, codes: Mapping[int, int | None], reports: Mapping[int, list[Finding]]) -> str:
        parts = []
        for host in self.hosts:
            said = [f"{f.rule} {f.summary}" for f in reports.get(host.index, [])]
            came = "never" if host.arrived is None else f"{host.arrived - self.began:.1f} s"
            gone = "never" if host.ended is None else f"{host.ended - self.began:.1f} s"
            code = codes.get(host.index)
            parts.append(f"--- h{host.index}: exit {code} at {gone}, came {came}, {said}")
            parts.append(host.process.text())
        return "\n".join(parts)


def _named(findings: list[Finding], rule: str) -> list[Finding]:
    return [f for f in findings if f.rule == rule]


def _number(who: Who) -> int:
    """The host that a finding means: by its name, by the rank that should be there otherwise."""
    if who.host.startswith("h") and who.host[1:].isdigit():
        return int(who.host[1:])
    return who.rank if who.rank >= 0 else who.index
