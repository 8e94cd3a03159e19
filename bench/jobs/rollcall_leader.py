"""The host where all meet, alone in its process: the agent's own listener, leader, state and rules.

``rollcall_leader.py SIZE TIMEOUT`` prints JSON lines: the port; then, once it was told to go on and has
decided, when the roster was full, when the decision was made, and the most memory that it had. Times are
CLOCK_MONOTONIC. The job's secret is in ROLLCALL_SECRET, as for its members; empty for none.
"""

import asyncio
import json
import os
import resource
import sys
import time

import msgspec

from allaboard.agent.main import reduce_gc_frequency
from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.leader import Leader
from allaboard.cluster.transport.link_trial import LINK_FIGURES
from allaboard.coordinator.job_state import JobState
from allaboard.coordinator.settings import JobSettings
from allaboard.facts import Declared, Phase
from allaboard.launch.open_file_limit import raise_limit
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.protocol.commands import AnnounceFinding, Command, OpenGate, ProbeLinks
from allaboard.protocol.events import (
    AgentConnected,
    LinksProbed,
    MemberFactsReported,
    ProcessSampled,
    RoleTaken,
    WorkerLaunched,
)
from allaboard.rules.engine.catalogue import load_catalogue

SECRET = os.environ.get("ROLLCALL_SECRET", "the job's secret").encode()
TICK = 0.05
FACTS = {
    "version python": "3.11.7", "version torch": "2.13.0+cpu", "version numpy": "2.4.6",
    "variable OMP_NUM_THREADS": "1", "variable NCCL_DEBUG": "WARN", "variable LANG": "C.UTF-8",
    "variable NCCL_SOCKET_IFNAME": "eth0", "limit open files": "1048576", "size /dev/shm": "64 MiB",
    "count CPUs": "96", "count GPUs": "8", "script": "0123456789ab", "commit": "0123456789ab",
    "script path": "/home/u/project/train.py", "data interface": "what h resolves to on itself",
    "interfaces": "lo, eth0, ib0", "data address": "10.0.0.1",
}  # fmt: skip


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def seen(rank: int, size: int, pid: int, now: float) -> ProcessSampled:
    told = Declared(
        framework="torch",
        call="init_process_group",
        rank=rank,
        world_size=size,
        place="tcp://h0:29500",
        backend="gloo",
        origin="RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
        local=False,
    )
    box = BoxReading(phase=Phase.ARRIVED, phase_since=now, round=1, declared=told)
    return ProcessSampled(pid=pid, worker=0, sampled_at=now, state="S", cpu=1.0, box=box, rank=rank)


def facts(rank: int) -> dict[str, str]:
    """What a host runs with: nearly the same as the others."""
    return FACTS | {"data address": f"10.{rank >> 16}.{rank >> 8 & 255}.{rank & 255}"}


def works(targets: int) -> bytes:
    """What a host met when it tried so many others."""
    return b"".join(LINK_FIGURES.pack(1.234e-4 + i * 1e-6, 9.876e8) for i in range(targets))


async def main() -> None:
    size, timeout = int(sys.argv[1]), float(sys.argv[2])
    raise_limit()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    woken = asyncio.Event()
    leader = Leader("job=1", SECRET, "torch", woken.set)
    policy = EndPolicy(only_reports=True)
    settings = JobSettings(
        launched=1, host="h0", joined=True, rank=0, timeout=timeout, policy=policy
    )
    entries = load_catalogue().entries
    await leader.listener.open_port(0)
    say(port=leader.listener.port)
    sys.stdin.readline()  # the others are ready; its own member comes, too
    job = JobState(settings, time.monotonic(), entries, lambda at: f"{at:.3f}")
    now = time.monotonic()
    here = AgentConnected(agent=0, host="h0", probe_address="127.0.0.1:1", rank=0)
    leader.events += [RoleTaken(leads=True), here, WorkerLaunched(worker=0, pid=1, launched_at=now)]
    leader.events += [MemberFactsReported(pid=1, facts=facts(0))]
    own = seen(0, size, 1, now)
    full = 0.0
    answers = 0
    ticks, spent = 0, 0.0
    wanted = size if timeout > 100 else size - 1
    reduce_gc_frequency()
    began = time.process_time()
    while True:
        now = time.monotonic()
        # As the agent does, which looks at its own worker at every turn.
        own = msgspec.structs.replace(own, sampled_at=now)
        events, leader.events = [*leader.events, own], []
        commands: list[Command] = []
        answers += sum(isinstance(event, MemberFactsReported) for event in events)
        decided = False
        for command in job.handle(now, *events):
            decided = decided or isinstance(command, OpenGate)
            if isinstance(command, AnnounceFinding) and command.finding.rule == "JOIN001":
                decided = True
            commands += leader.route_command(command)
        commands += leader.send_due(now)
        for command in commands:
            if isinstance(command, ProbeLinks):
                tried = LinksProbed(agent=0, worked=works(len(command.targets)))
                leader.events.append(tried)
        ticks, spent = ticks + 1, spent + time.monotonic() - now
        if not full and answers >= wanted:
            full = now
        if decided:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            say(full=full, decided=time.monotonic(), cpu=time.process_time() - began,
                mb=most / 1024, at_start_mb=before / 1024,
                ticks=ticks, looks=job.status.evaluations, in_ticks=spent,
                findings=[f.rule for f in job.status.findings])  # fmt: skip
            await asyncio.sleep(20)  # until everybody has heard it; ended by who started us
            return
        woken.clear()
        try:
            async with asyncio.timeout(TICK):
                await woken.wait()
        except TimeoutError:
            pass


if __name__ == "__main__":
    asyncio.run(main())
