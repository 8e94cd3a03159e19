"""Workers are blocked inside the framework's init, although the roll call is complete.

## Why it matters
The roll call is complete, or was only observed (`--observe`), and init still does not return. Either the
workers cannot reach each other on the ports that the framework picked itself (gloo's and NCCL's data ports
are not the master's), or the address resolves to loopback on one of them, or some of them have not joined.

## What to do
See which workers are inside init and which are not.

- If all are inside, the cause is the network between them. Check that every host can reach every other on all
  high ports, and which interface is used (`GLOO_SOCKET_IFNAME`, `NCCL_SOCKET_IFNAME`).
- If all are on one host, check that host's loopback: it is down, or filtered.
- If the job uses NCCL on many hosts, init may legitimately take a minute.
- If the process joins again after `destroy_process_group` (a sweep, one trial after the other) at the same
  port, give each init a port of its own. An earlier DistributedDataParallel keeps the earlier store open, and
  the ranks find the earlier addresses in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import agrees, names, on_host
from allaboard.analysis.parameter_servers.parameter_servers import (
    TF2_CHIEF,
    collective_with_servers,
)
from allaboard.analysis.roll_call.previous_attempt import BUSY, before
from allaboard.analysis.roll_call.reinit import OWN_PORT, joined_again
from allaboard.analysis.roll_call.roll_call import Roll, roll_calls
from allaboard.analysis.roll_call.task_names import called
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Severity, Stage, Who
from allaboard.facts.samples import coming, declared, ended, gathering, held, job, member

TRIES = 8
"""Most `nc` commands in one piece of advice."""
PATIENCE = 20.0
"""Seconds in init before it is reported; a healthy gloo or gRPC start takes less than three."""


def check(view: JobView) -> Iterator[Claim]:
    for roll in roll_calls(view):
        inside = list(roll.inside)
        if not inside or any(m.cpu > BUSY for m in inside):
            continue
        if roll.gone or any(collective_with_servers(m) for m in inside):
            continue  # JOIN003 or a PS rule reports the cause
        if before(view, roll):
            continue  # JOIN008
        if roll.never_heard_of:
            continue  # JOIN001 reports it, or they run without the probe and may be inside init
        since = max(m.phase_since for m in inside)
        if view.now - since < PATIENCE:
            continue
        call = inside[0].declared.call if inside[0].declared is not None else "init"
        absent = called(inside[0].declared, roll.missing, 64)
        elsewhere = _listens_elsewhere(inside)
        if elsewhere is not None:
            yield _bound(elsewhere, inside, since)
            continue
        through = [m for m in roll.here if m.phase > Phase.JOINING]
        told = "no rank is missing"
        if roll.missing:
            told = f"{absent} {'have' if len(roll.missing) > 1 else 'has'} not entered it"
        elif _to_servers(inside[0]):
            told = "all tasks that it connects to are up"
        elif through:
            out = called(None, (m.who.rank for m in through), 64)
            told = f"{out} {'have' if len(through) > 1 else 'has'} completed it"
        blocked = f"{len(inside)} of {roll.size} are"
        if _to_servers(inside[0]):
            blocked = f"{names(inside)} {'are' if len(inside) > 1 else 'is'}"
        again = all(map(joined_again, inside)) and not roll.missing
        yield Claim(
            summary=f"{blocked} blocked inside {call}; {told}",
            who=tuple(m.who for m in inside),
            evidence=(
                Evidence(f"in {call} for {view.now - since:.0f} s, idle", "black box"),
                Evidence(f"rendezvous at {_place(inside[0])}", "declared"),
                *(
                    [Evidence(f"init number {inside[0].round} of this process", "black box")]
                    * again
                ),
            ),
            fix=f"{_look(view, roll)}see what {absent} {agrees('do', roll.missing)} instead; the others can "
            f"only wait for {'them' if len(roll.missing) > 1 else 'it'}"
            if roll.missing
            else _reach(view, inside),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            since=since,
        )


def _look(view: JobView, roll: Roll) -> str:
    """Return the command that shows where the first late member is, or ""."""
    own = [m for m in roll.late if not m.candidate]
    return f"{on_host(view, own[0], f'py-spy dump --pid {own[0].who.pid}')}   # " if own else ""


def _to_servers(one: Member) -> bool:
    """Return True for a TensorFlow 2 chief, which connects to servers at the addresses of the cluster."""
    return one.declared is not None and one.declared.call == TF2_CHIEF


def _reach(view: JobView, inside: list[Member]) -> str:
    """Return advice that lets the members reach each other; on one host, only the loopback is between
    them."""
    first, told = inside[0].who, inside[0].declared
    if view.joined and told is not None and _to_servers(inside[0]):
        own = f"{told.job}:{told.index}"
        ends = [a.rpartition(":") for task, a in told.cluster.items() if task != own]
        tries = "; ".join(f"nc -vz -w3 {host.strip('[]')} {port}" for host, _, port in ends[:TRIES])
        return (
            f"on {first.host}: {tries}   # it waits without limit for a task that refuses or does not "
            "answer"
        )
    if all(map(joined_again, inside)):
        return OWN_PORT
    if len({m.who.host for m in inside}) > 1:
        return (
            "open all ports above 1024 between the hosts, or set GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME "
            "to the interface by which they reach each other"
        )
    return (
        "all are on one host: check that its loopback is up and not filtered "
        "(ip link show lo; iptables -S; nft list ruleset), or try GLOO_SOCKET_IFNAME=lo; "
        f"py-spy dump --native --pid {inside[0].who.pid} shows where it is blocked"
    )


def _listens_elsewhere(inside: list[Member]) -> Member | None:
    """Return rank 0 if it is set to listen on a port other than the one that all connect to."""
    for one in inside:
        told = one.declared
        if (
            told is not None
            and told.rank == 0
            and told.bind
            and _port(told.bind) != _port(told.place)
        ):
            return one
    return None


def _bound(one: Member, inside: list[Member], since: float) -> Claim:
    told = one.declared
    assert told is not None
    there, here = _port(told.place), _port(told.bind)
    return Claim(
        summary=f"{one.who.name} listens on port {here}, but all ranks connect to port {there}",
        who=tuple(m.who for m in inside),
        evidence=(
            Evidence(told.bind, "coordinator_bind_address"),
            Evidence(told.place.removeprefix("tcp://"), "coordinator_address"),
        ),
        fix=f"set the port of coordinator_bind_address to {there}, or remove the argument, unless port "
        f"{there} is forwarded to {here}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=since,
    )


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _place(one: object) -> str:
    told = getattr(one, "declared", None)
    return (told.place or "its cluster spec") if told is not None else "an unknown address"


def _told(rank: int, bind: str) -> Member:
    told = declared(rank, 2, framework="jax", place="tcp://a:30000", bind=bind if rank == 0 else "")
    return member(rank, phase=Phase.JOINING, phase_since=60.0, declared=told)


def _task(rank: int, job_name: str, phase: Phase) -> Member:
    cluster = {"chief:0": "a:1", "worker:0": "b:1", "ps:0": "c:1"}
    call = TF2_CHIEF if job_name == "chief" else "tf.distribute.Server"
    who = Who(job=job_name, index=0, rank=rank, host="abc"[rank], pid=101)
    told = declared(rank, call=call, job=job_name, index=0, cluster=cluster, place="")
    return member(rank, who=who, phase=phase, phase_since=60.0, declared=told)


def _second(rank: int) -> Member:
    told = declared(rank, again=True)
    return member(rank, phase=Phase.JOINING, phase_since=60.0, round=2, declared=told)


RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "data ports closed": (
            job(*(member(r, phase=Phase.JOINING, phase_since=60.0) for r in range(3))),
            "3 of 3 are blocked inside init_process_group; no rank is missing",
        ),
        "one rank has completed it": (
            job(
                member(0),
                *(member(r, phase=Phase.JOINING, phase_since=60.0) for r in (1, 2)),
            ),
            "2 of 3 are blocked inside init_process_group; rank 0 has completed it",
        ),
        "JAX's coordinator binds a different port": (
            job(*(_told(r, "0.0.0.0:30003") for r in range(2)), launched=2),
            "worker 0 listens on port 30003, but all ranks connect to port 30000",
        ),
        "it binds that port": (
            job(*(_told(r, "0.0.0.0:30000") for r in range(2)), launched=2),
            "2 of 2 are blocked inside init_process_group; no rank is missing",
        ),
        "TensorFlow 2's chief does not reach a server": (
            job(
                _task(0, "chief", Phase.JOINING),
                _task(1, "worker", Phase.JOINED),
                _task(2, "ps", Phase.JOINED),
                joined=True,
            ),
            "chief 0 is blocked inside ParameterServerStrategy; all tasks that it connects to are up",
        ),
        "joining again in the same process": (
            job(*(_second(r) for r in range(3))),
            "3 of 3 are blocked inside init_process_group; no rank is missing",
        ),
        "one never entered": (
            gathering(
                member(0, phase=Phase.JOINING, phase_since=60.0),
                member(1, phase=Phase.JOINING, phase_since=60.0),
                coming(2),
            ),
            "2 of 3 are blocked inside init_process_group; rank 2 has not entered it",
        ),
    },
    silent_on={
        "just begun": job(*(member(r, phase=Phase.JOINING, phase_since=95.0) for r in range(3))),
        "compiling": job(
            *(member(r, phase=Phase.JOINING, phase_since=60.0, cpu=1.0) for r in range(3))
        ),
        "one has exited": gathering(
            member(0, phase=Phase.JOINING, phase_since=60.0),
            member(1, phase=Phase.JOINING, phase_since=60.0),
            ended(2, code=1, member={"phase": Phase.IMPORTED, "declared": None, "round": 0}),
        ),
        "held by the roll call": gathering(held(0), held(1), coming(2)),
        "one was never started": gathering(
            member(0, phase=Phase.JOINING, phase_since=60.0),
            member(1, phase=Phase.JOINING, phase_since=60.0),
        ),
    },
    since="0.1",
    drill=("observed-absence",),
    relations=Relations(ends_by_abort=True),
)
