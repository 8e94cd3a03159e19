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

from allaboard.analysis.member_names import command_on_host, conjugate_verb, name_members
from allaboard.analysis.parameter_servers import TF2_CHIEF_CALL, is_collective_beside_servers
from allaboard.analysis.roll_call.previous_attempt import BUSY_CORES, members_of_previous_attempt
from allaboard.analysis.roll_call.reinit import OWN_PORT_ADVICE, has_joined_again
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.roll_call.task_names import describe_tasks
from allaboard.analysis.stalls.awaited_end import awaited_end_advice, awaited_end_evidence
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Certainty, Claim, Evidence, JobView, Severity, Who
from allaboard.facts.member import Member, Phase
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    sample_declaration,
    sample_job,
    sample_member,
)

MAX_COMMANDS = 8
"""Most `nc` commands in one piece of advice."""
MIN_BLOCKED_S = 20.0
"""Seconds in init before it is reported; a healthy gloo or gRPC start takes less than three."""


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        blocked_members = list(roll.in_init)
        if not blocked_members or any(m.cpu > BUSY_CORES for m in blocked_members):
            continue
        if roll.ended or any(is_collective_beside_servers(m) for m in blocked_members):
            continue  # JOIN003 or a PS rule reports the cause
        if members_of_previous_attempt(view, roll):
            continue  # JOIN008
        if roll.unheard_ranks:
            continue  # JOIN001 reports it, or they run without the probe and may be inside init
        since = max(m.phase_since for m in blocked_members)
        if view.now - since < MIN_BLOCKED_S:
            continue
        call = (
            blocked_members[0].declared.call if blocked_members[0].declared is not None else "init"
        )
        missing_names = describe_tasks(blocked_members[0].declared, roll.missing, 64)
        elsewhere = _rank_0_on_wrong_port(blocked_members)
        if elsewhere is not None:
            yield _claim_wrong_port(elsewhere, blocked_members, since)
            continue
        completed = [m for m in roll.present if m.phase > Phase.JOINING]
        remainder = "no rank is missing"
        if roll.missing:
            remainder = (
                f"{missing_names} {'have' if len(roll.missing) > 1 else 'has'} not entered it"
            )
        elif _connects_to_servers(blocked_members[0]):
            remainder = "all tasks that it connects to are up"
        elif completed:
            completed_names = describe_tasks(None, (m.who.rank for m in completed), 64)
            remainder = f"{completed_names} {'have' if len(completed) > 1 else 'has'} completed it"
        blocked = f"{len(blocked_members)} of {roll.size} are"
        if _connects_to_servers(blocked_members[0]):
            blocked = (
                f"{name_members(blocked_members)} {'are' if len(blocked_members) > 1 else 'is'}"
            )
        again = all(map(has_joined_again, blocked_members)) and not roll.missing
        yield Claim(
            summary=f"{blocked} blocked inside {call}; {remainder}",
            who=tuple(m.who for m in blocked_members),
            evidence=(
                Evidence(f"in {call} for {view.now - since:.0f} s, idle", "black box"),
                *awaited_end_evidence(blocked_members),
                Evidence(f"rendezvous at {_address(blocked_members[0])}", "declared"),
                *(
                    [
                        Evidence(
                            f"init number {blocked_members[0].round} of this process", "black box"
                        )
                    ]
                    * again
                ),
            ),
            fix=f"{_command_for_late_member(view, roll)}see what {missing_names} "
            f"{conjugate_verb('do', roll.missing)} instead; the others can "
            f"only wait for {'them' if len(roll.missing) > 1 else 'it'}"
            if roll.missing
            else _advise_network(view, blocked_members),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            since=since,
        )


def _command_for_late_member(view: JobView, roll: RollCall) -> str:
    """Return the command that shows where the first late member is, or ""."""
    late = [m for m in roll.late if not m.candidate]
    return (
        f"{command_on_host(view, late[0], f'py-spy dump --pid {late[0].who.pid}')}   # "
        if late
        else ""
    )


def _connects_to_servers(member: Member) -> bool:
    """Return True for a TensorFlow 2 chief, which connects to servers at the addresses of the cluster."""
    return member.declared is not None and member.declared.call == TF2_CHIEF_CALL


def _advise_network(view: JobView, blocked_members: list[Member]) -> str:
    """Return advice that lets the members reach each other; on one host, only the loopback is between
    them."""
    first_who, declaration = blocked_members[0].who, blocked_members[0].declared
    if view.joined and declaration is not None and _connects_to_servers(blocked_members[0]):
        own_task = f"{declaration.job}:{declaration.index}"
        ends = [a.rpartition(":") for task, a in declaration.cluster.items() if task != own_task]
        tries = "; ".join(
            f"nc -vz -w3 {host.strip('[]')} {port}" for host, _, port in ends[:MAX_COMMANDS]
        )
        return (
            f"on {first_who.host}: {tries}   # it waits without limit for a task that refuses or does not "
            "answer"
        )
    if advice := awaited_end_advice(blocked_members):
        return advice
    if all(map(has_joined_again, blocked_members)):
        return OWN_PORT_ADVICE
    if len({m.who.host for m in blocked_members}) > 1:
        return (
            "let every host reach every other on all ports above 1024, or set GLOO_SOCKET_IFNAME "
            "or NCCL_SOCKET_IFNAME to the interface by which they reach each other"
        )
    return (
        "all are on one host: check that its loopback is up and not filtered "
        "(ip link show lo; iptables -S; nft list ruleset), or try GLOO_SOCKET_IFNAME=lo; "
        f"py-spy dump --native --pid {blocked_members[0].who.pid} shows where it is blocked"
    )


def _rank_0_on_wrong_port(blocked_members: list[Member]) -> Member | None:
    """Return rank 0 if it is set to listen on a port other than the one that all connect to."""
    for candidate in blocked_members:
        declaration = candidate.declared
        if (
            declaration is not None
            and declaration.rank == 0
            and declaration.bind
            and _port(declaration.bind) != _port(declaration.place)
        ):
            return candidate
    return None


def _claim_wrong_port(rank_0: Member, blocked_members: list[Member], since: float) -> Claim:
    declaration = rank_0.declared
    assert declaration is not None
    connect_port, listen_port = _port(declaration.place), _port(declaration.bind)
    return Claim(
        summary=f"{rank_0.who.name} listens on port {listen_port}, but all ranks connect to port "
        f"{connect_port}",
        who=tuple(m.who for m in blocked_members),
        evidence=(
            Evidence(declaration.bind, "coordinator_bind_address"),
            Evidence(declaration.place.removeprefix("tcp://"), "coordinator_address"),
        ),
        fix=f"set the port of coordinator_bind_address to {connect_port}, or remove the argument, "
        f"unless port {connect_port} is forwarded to {listen_port}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        since=since,
    )


def _port(address: str) -> str:
    return Address.from_endpoint(address).port


def _address(member: object) -> str:
    declaration = getattr(member, "declared", None)
    return (
        (declaration.place or "its cluster spec")
        if declaration is not None
        else "an unknown address"
    )


def _jax_member(rank: int, bind: str) -> Member:
    declaration = sample_declaration(
        rank, 2, framework="jax", place="tcp://a:30000", bind=bind if rank == 0 else ""
    )
    return sample_member(rank, phase=Phase.JOINING, phase_since=60.0, declared=declaration)


def _task(rank: int, job_name: str, phase: Phase) -> Member:
    cluster = {"chief:0": "a:1", "worker:0": "b:1", "ps:0": "c:1"}
    call = TF2_CHIEF_CALL if job_name == "chief" else "tf.distribute.Server"
    identity = Who(job=job_name, index=0, rank=rank, host="abc"[rank], pid=101)
    declaration = sample_declaration(
        rank, call=call, job=job_name, index=0, cluster=cluster, place=""
    )
    return sample_member(rank, who=identity, phase=phase, phase_since=60.0, declared=declaration)


def _rejoining(rank: int) -> Member:
    declaration = sample_declaration(rank, again=True)
    return sample_member(rank, phase=Phase.JOINING, phase_since=60.0, round=2, declared=declaration)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "all ranks are blocked inside init, as when the data ports are closed": (
            sample_job(
                *(sample_member(r, phase=Phase.JOINING, phase_since=60.0) for r in range(3))
            ),
            "3 of 3 are blocked inside init_process_group; no rank is missing",
        ),
        "two ranks are blocked inside init, and rank 0 has completed it": (
            sample_job(
                sample_member(0),
                *(sample_member(r, phase=Phase.JOINING, phase_since=60.0) for r in (1, 2)),
            ),
            "2 of 3 are blocked inside init_process_group; rank 0 has completed it",
        ),
        "JAX's coordinator listens on another port than the one given to all ranks": (
            sample_job(*(_jax_member(r, "0.0.0.0:30003") for r in range(2)), launched=2),
            "worker 0 listens on port 30003, but all ranks connect to port 30000",
        ),
        "JAX's coordinator listens on the right port, and all ranks are blocked": (
            sample_job(*(_jax_member(r, "0.0.0.0:30000") for r in range(2)), launched=2),
            "2 of 2 are blocked inside init_process_group; no rank is missing",
        ),
        "TensorFlow 2's chief is blocked, although all tasks of its cluster are up": (
            sample_job(
                _task(0, "chief", Phase.JOINING),
                _task(1, "worker", Phase.JOINED),
                _task(2, "ps", Phase.JOINED),
                joined=True,
            ),
            "chief 0 is blocked inside ParameterServerStrategy; all tasks that it connects to are up",
        ),
        "all ranks are blocked when they join again in the same process": (
            sample_job(*(_rejoining(r) for r in range(3))),
            "3 of 3 are blocked inside init_process_group; no rank is missing",
        ),
        "two ranks are blocked inside init, and the third is alive outside it": (
            gathering_job(
                sample_member(0, phase=Phase.JOINING, phase_since=60.0),
                sample_member(1, phase=Phase.JOINING, phase_since=60.0),
                coming_member(2),
            ),
            "2 of 3 are blocked inside init_process_group; rank 2 has not entered it",
        ),
    },
    silent_on={
        "all ranks have been inside init for 5 seconds": sample_job(
            *(sample_member(r, phase=Phase.JOINING, phase_since=95.0) for r in range(3))
        ),
        "all ranks use the CPU inside init, as when they compile": sample_job(
            *(sample_member(r, phase=Phase.JOINING, phase_since=60.0, cpu=1.0) for r in range(3))
        ),
        "one rank exited before init, which JOIN003 reports": gathering_job(
            sample_member(0, phase=Phase.JOINING, phase_since=60.0),
            sample_member(1, phase=Phase.JOINING, phase_since=60.0),
            ended_member(2, code=1, member={"phase": Phase.IMPORTED, "declared": None, "round": 0}),
        ),
        "the roll call holds two ranks before init": gathering_job(
            arrived_member(0), arrived_member(1), coming_member(2)
        ),
        "one rank was never started, which JOIN001 reports after the timeout": gathering_job(
            sample_member(0, phase=Phase.JOINING, phase_since=60.0),
            sample_member(1, phase=Phase.JOINING, phase_since=60.0),
        ),
    },
    drill=("observed-absence",),
    relations=Relations(ends_by_abort=True, reports_wait=True),
)
