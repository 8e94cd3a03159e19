"""A worker that the others wait for has not joined.

## Why it matters
Every framework's init waits until the last worker has joined: PyTorch for 30 minutes, TensorFlow forever,
JAX for five minutes, after which it aborts. None of them says which worker is missing.

## What to do
Find out whether anything starts it. The world size may be larger than the number of processes that are
started, a rank may be computed wrongly, the launcher may have been given too few hosts, or a batch script may
start the program without `srun`. `--timeout` sets how long to wait for a worker that has not been seen at
all.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis import member_names
from allaboard.analysis.roll_call.ended_by_launcher import (
    members_ended_by_launcher,
    unaccounted_ranks,
)
from allaboard.analysis.roll_call.first_member import first_member_name, start_advice
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.analysis.roll_call.task_names import describe_tasks, who_has_rank
from allaboard.analysis.roll_call.waiting_message import describe_turned_away, relevant_knocks
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Answer, Call, Certainty, Claim, Evidence, JobView, Knock
from allaboard.facts.member import Declared, Exit, Member, Phase
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    gathering_job,
    led_job,
    sample_declaration,
    sample_member,
)

FIX_BY_REJECTION = {
    "no-secret": "give all hosts of the job the same secret: --secret-file FILE, or ALLABOARD_SECRET",
    "no-tls": "give all hosts certificates of the same authority (--tls-cert, --tls-key, --tls-ca), or none",
    "tls-name": "give that host a certificate with one of the names of --tls-names, or add its name to "
    "--tls-names on all hosts",
    "version": "install the same version of allaboard on all hosts: pip install -U allaboard",
    "other-job": "if it belongs to this job, start all of its tasks in one launch, or give all of them the "
    "same ALLABOARD_JOB_ID; otherwise give each job a port of its own",
}
"""Advice by the kind of rejection: what all hosts of a job must have in common."""


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view):
        ended = members_ended_by_launcher(roll)
        if ended and unaccounted_ranks(roll) and _sees_all_hosts(view, roll) and not roll.late:
            yield _claim_ended_by_launcher(roll, ended)
            continue
        absent, waiting = roll.unheard_ranks, _waiting(view, roll)
        if not absent or not waiting or not _sees_all_hosts(view, roll):
            continue
        since = [m.phase_since for m in waiting]
        waited = view.now - max(view.launched_at, *since)
        if waited >= view.timeout:
            yield _claim(view, roll, waited, min(since))


def _waiting(view: JobView, roll: RollCall) -> tuple[Member, ...]:
    """Return the members held at the gate. If no member is held (`--observe`), return those that are inside
    init, unless members on hosts that this agent cannot see may be there too."""
    return roll.held_members or (() if view.joined else roll.in_init)


def _sees_all_hosts(view: JobView, roll: RollCall) -> bool:
    """Return True if this agent can see all hosts of the job; otherwise absence proves nothing."""
    if view.joined:
        return view.leads
    return all(m.declared is not None and m.declared.local for m in roll.present)


def _claim(view: JobView, roll: RollCall, waited: float, since: float) -> Claim:
    declaration, absent = roll.present[0].declared, roll.unheard_ranks
    assert declaration is not None
    names = describe_tasks(declaration, absent, 16)
    stood_in = _is_stood_in_for(view, declaration, absent)
    if stood_in and view.call is not None and not declaration.cluster:
        further = f", {describe_tasks(declaration, absent[1:], 16)}" if absent[1:] else ""
        names = first_member_name(declaration, view.call.address) + further
    present = f"{len(roll.present)} of {roll.size} have"
    summary = f"{names} {_has(absent)} not joined ({present})"
    refused = relevant_knocks(view, roll)
    if refused:
        summary += f"; {describe_turned_away(refused[0])}"
    outside_step = "" if refused else view.outside_step
    if outside_step:
        summary += ": a batch script is one task, and srun starts the others"
    return Claim(
        summary=summary,
        who=tuple(who_has_rank(declaration, r) for r in absent),
        evidence=(
            Evidence(f"world size {roll.size}", declaration.origin or declaration.call),
            Evidence(f"waited {waited:.0f} s", "timeout"),
            *((Evidence(outside_step, "environment"),) if outside_step else ()),
            *((Evidence(f"rendezvous at {view.place}", "--coordinator"),) if view.place else ()),
            *_first_hosts_answer(view, declaration, absent),
            *(Evidence(reason, "roll call") for reason in map(describe_turned_away, refused[1:])),
        ),
        fix=(view.step_command if outside_step else "")
        or _advise_ssh(declaration.origin, absent)
        or (FIX_BY_REJECTION[refused[0].kind] if refused else "")
        or (
            f"{_on_first_host(declaration, view.call.address)}"
            f"{start_advice(declaration, view.call.address)}; or "
            if absent == (0,) and view.call is not None and stood_in
            else f"start {names}, or "
        )
        + f"{_advise_fewer_members(declaration, len(roll.present))}{_advise_coordinator(view.place)}",
        # Members that are already inside init may meet ranks there that this agent cannot see.
        certainty=Certainty.CERTAIN if roll.held_members else Certainty.LIKELY,
        since=since,
        awaits=bool(roll.held_members),
    )


def _first_hosts_answer(
    view: JobView, declaration: Declared, absent: tuple[int, ...]
) -> tuple[Evidence, ...]:
    """Return what answers at the address of a first task that is missing, while another one leads."""
    call = view.call
    if call is None or not _is_stood_in_for(view, declaration, absent):
        return ()
    times = f", {call.tries} times" if call.tries > 1 else ""
    waits_forever = "TensorFlow itself waits for ever"
    return (
        Evidence(f"connect to {call.address}: {call.said}{times}", "the host that leads instead"),
        *((Evidence(waits_forever, "its own timeout"),) if declaration.cluster else ()),
    )


def _is_stood_in_for(view: JobView, declaration: Declared, absent: tuple[int, ...]) -> bool:
    """Return True if another task or host leads since the first one is not there, and its answer is known."""
    call = view.call
    if 0 not in absent or call is None:
        return False
    return call.address in declaration.cluster.values() or (
        view.leads and declaration.place.endswith(f"//{call.address}")
    )


def _on_first_host(declaration: Declared, address: str) -> str:
    """Return where the command is typed; in a cluster its own address in the command says so."""
    return "" if declaration.cluster else f"on {Address.from_endpoint(address).host}: "


def _claim_ended_by_launcher(roll: RollCall, ended: tuple[Member, ...]) -> Claim:
    """Report ranks whose peers were ended in init, as a launcher does when one of its workers fails."""
    declaration = ended[0].declared
    assert declaration is not None
    absent = unaccounted_ranks(roll)
    absent_names = describe_tasks(declaration, absent, 16)
    return Claim(
        summary=f"{absent_names} {_has(absent)} not joined; {member_names.name_members(ended)} "
        f"waited in init until the launcher ended {'it' if len(ended) == 1 else 'them'}",
        who=tuple(who_has_rank(declaration, r) for r in absent),
        evidence=(Evidence(f"world size {roll.size}", declaration.origin or declaration.call),),
        fix=f"read the output of {absent_names}: most likely it failed before init, and the "
        "launcher ended the others",
        certainty=Certainty.LIKELY,
        since=min(m.phase_since for m in ended),
    )


def _has(ranks: tuple[int, ...]) -> str:
    return "have" if len(ranks) > 1 else "has"


def _advise_fewer_members(declaration: Declared, here: int) -> str:
    """Return the advice for a job that was meant to have fewer members."""
    if declaration.cluster:
        return "remove it from the cluster in the TF_CONFIG of all other tasks"
    return f"correct the world size where it is set (to {here}?)"


def _advise_coordinator(address: str) -> str:
    """Return a reminder to give --coordinator on every host, or "" if the user did not give one."""
    if not address:
        return ""
    return f"; if it is running, give it {address} too, with --coordinator or ALLABOARD_COORDINATOR"


def _advise_ssh(origin: str, absent: tuple[int, ...]) -> str:
    """Return the ssh command to try if `preflight --hosts` starts the ranks, else ""."""
    if not origin.startswith("--hosts"):
        return ""
    hosts = origin.removeprefix("--hosts").strip().split(",")
    rank = absent[0]
    host = hosts[rank] if rank < len(hosts) and all(hosts) else "HOST"
    where = f"rank {rank} is started on {host if host != 'HOST' else 'its host'} by --hosts"
    return f"ssh -o BatchMode=yes {host} true   # {where}; its ssh error is printed with its name"


_AWAY = Knock(
    peer="10.0.0.2",
    kind="no-secret",
    said="has a job secret, but the leader was given none",
    host="h1",
    rank=1,
)
_BARE = Knock(
    peer="10.0.0.2",
    kind="no-tls",
    said="has no certificate, and here one is wanted",
    host="h1",
    rank=1,
)
_OTHER = Knock(
    peer="10.0.0.2", kind="other-job", said="belongs to job 41, this is 42", host="h1", rank=1
)
_TASKS = {"worker:0": "a:1", "ps:0": "b:1", "chief:0": "c:1"}
_INSIDE = tuple(sample_member(r, phase=Phase.JOINING, phase_since=60.0) for r in (0, 1))
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "only three of four ranks were started": (
            gathering_job(
                arrived_member(0, 4), arrived_member(1, 4), arrived_member(2, 4), now=121.0
            ),
            "rank 3 has not joined (3 of 4 have)",
        ),
        "a batch script starts the program without srun": (
            led_job(
                arrived_member(0, 8),
                outside_step="SLURM_NTASKS=8, no SLURM_STEP_ID",
                step_command="srun allaboard run train.py",
                now=121.0,
            ),
            "ranks 1-7 have not joined (1 of 8 have): a batch script is one task, and srun "
            "starts the others",
        ),
        "one of three ranks is missing under `--observe`": (
            gathering_job(*_INSIDE, now=121.0),
            "rank 2 has not joined (2 of 3 have)",
        ),
        "a parameter server of the cluster was not started": (
            gathering_job(
                *(
                    arrived_member(r, declared=sample_declaration(r, cluster=_TASKS))
                    for r in (0, 1)
                ),
                now=121.0,
            ),
            "ps 0 (b:1) has not joined (2 of 3 have)",
        ),
        "a host was rejected: it has a secret, and the leader has none": (
            led_job(arrived_member(0, 2), knocks=(_AWAY,), now=121.0),
            "rank 1 has not joined (1 of 2 have); h1 (rank 1) was rejected: it has a job secret, but the "
            "leader was given none",
        ),
        "a host was rejected: it has no certificate, and the job uses TLS": (
            led_job(arrived_member(0, 2), knocks=(_BARE,), now=121.0),
            "rank 1 has not joined (1 of 2 have); h1 (rank 1) was rejected: it has no certificate, and "
            "here one is wanted",
        ),
        "a host was rejected: it has another job id": (
            led_job(arrived_member(0, 2), knocks=(_OTHER,), now=121.0),
            "rank 1 has not joined (1 of 2 have); h1 (rank 1) was rejected: it belongs to job 41, this is 42",
        ),
        "a worker of another job was rejected, whose rank has already joined here": (
            led_job(*(arrived_member(r, 3) for r in (0, 1)), knocks=(_OTHER,), now=121.0),
            "rank 2 has not joined (2 of 3 have)",
        ),
        "one of three ranks is missing in a job with `--coordinator`": (
            led_job(
                *(arrived_member(r, 3) for r in (0, 1)), place="etcd://node9:2379/a", now=121.0
            ),
            "rank 2 has not joined (2 of 3 have)",
        ),
        "the launcher ended the workers that waited in init": (
            gathering_job(arrived_member(0, exit=Exit(ended_at=69.0)), arrived_member(2), now=70.0),
            "rank 1 has not joined; worker 0 waited in init until the launcher ended it",
        ),
        "the first host never starts, and the other hosts meet without it": (
            led_job(
                *(
                    arrived_member(
                        r, 3, declared=sample_declaration(r, 3, place="tcp://node0:29500")
                    )
                    for r in (1, 2)
                ),
                call=Call(
                    address="node0:29500",
                    answer=Answer.REFUSED,
                    since=60.0,
                    tries=30,
                    said="Connection refused",
                ),
                now=121.0,
            ),
            "rank 0 (node0:29500) has not joined (2 of 3 have)",
        ),
        "one of three ranks that `--hosts` starts over ssh is missing": (
            gathering_job(
                *(
                    arrived_member(
                        r, declared=sample_declaration(r, 3, origin="--hosts a,root@b,c")
                    )
                    for r in (0, 2)
                ),
                now=121.0,
            ),
            "rank 1 has not joined (2 of 3 have)",
        ),
    },
    silent_on={
        "under `--observe`, ranks on other hosts cannot be seen": led_job(*_INSIDE, now=121.0),
        "under `--observe`, a live worker has yet to join": gathering_job(
            *_INSIDE, coming_member(2), now=121.0
        ),
        "the others have waited for 59 seconds, less than the timeout": gathering_job(
            arrived_member(0, 4), arrived_member(1, 4), arrived_member(2, 4), now=119.0
        ),
        "the missing worker is alive, in user code, which JOIN002 reports": gathering_job(
            arrived_member(0), arrived_member(1), coming_member(2), now=500.0
        ),
    },
    drill=(
        "never-comes",
        "host-never-starts",
        "etcd-other-prefix",
        "first-task-absent",
        "first-host-absent",
    ),
    relations=Relations(
        precedes_all=True,
        reports_wait=True,
        raised_as=r"was not reachable via ssh|could not connect to some hosts via ssh",
    ),
)
