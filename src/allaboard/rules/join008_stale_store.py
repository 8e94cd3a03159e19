"""The rendezvous of an earlier run is still open at this job's address.

## Why it matters
PyTorch lets a new rank 1 join an old job's store: both jobs continue training with sums that mix the two, and
both exit with code 0. The new rank 0 fails with `Address already in use`.

With a file:// rendezvous, the file remains when a run is killed. The next run reads the addresses of
processes that no longer exist, and hangs in init without a message. The file may also remain when a job
destroys its group and creates another one at the same file: if two ranks leave at the same moment, PyTorch
sometimes does not remove it (observed after 16 to 81 rounds).

## What to do
For a port: find out which process holds it (`ss -ltnp` on the host of rank 0). End that process if it is left
over from an earlier run; otherwise use another port for this run. For a file: remove it once no run uses it.
Until then allaboard holds the workers of this run at the gate.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from allaboard.analysis.member_names import command_on_host, name_by_rank
from allaboard.analysis.roll_call.previous_attempt import (
    members_misled_by_store,
    members_of_previous_attempt,
)
from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_attempt
from allaboard.analysis.roll_call.roll_call import RollCall, find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Address, Answer, Certainty, Claim, Evidence, Holder, JobView, Who
from allaboard.facts.member import Member, Phase, Raised
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    led_job,
    sample_declaration,
    sample_job,
    sample_member,
)

MIN_HELD_S = 2.0
"""Seconds: an earlier run may be about to close its store."""


def check(view: JobView) -> Iterator[Claim]:
    rolls = find_roll_calls(view)
    waiting = [m for roll in rolls for m in roll.held_members]
    holder = view.holder
    store = holder is not None and holder.answer is Answer.STORE
    if holder is not None and holder.job and not holder.ours:
        store = False  # JOIN009 reports another job's store
    if holder is not None and store and waiting and view.now - holder.looked_at >= MIN_HELD_S:
        yield _claim_held_port(view, waiting[0], holder)
    yield from _stale_files(view, rolls)
    yield from _misled_restarts(view, rolls)
    tried = find_attempt(view, Answer.STORE)
    if tried is None or not rolls or not 0 < rolls[0].size <= tried.call.joined:
        return
    yield Claim(
        summary=f"the store at {tried.call.address} belongs to a run that is already complete: "
        f"all {tried.call.joined} of its clients have joined",
        who=(tried.member.who,),
        evidence=(
            Evidence(f"init/ = {tried.call.joined}, world size {rolls[0].size}", "TCPStore"),
            *tried.evidence[1:],
        ),
        fix=f"on {tried.host_name}: ss -ltnp 'sport = :{tried.port}'   # if it is an earlier run, end it or "
        "use another port; if it is this run and this worker was restarted, restart all workers",
        since=tried.call.since,
    )


def _misled_restarts(view: JobView, rolls: tuple[RollCall, ...]) -> Iterator[Claim]:
    """Report addresses of an earlier attempt. torchrun restarts all ranks at the store that it keeps (since
    PyTorch 2.4), where the addresses of the earlier ranks remain: a rank that reads one connects to a closed
    port."""
    for roll in rolls:
        misled_members = members_misled_by_store(view, roll)
        earlier = members_of_previous_attempt(view, roll) if misled_members else ()
        if not earlier:
            continue
        declaration = misled_members[0].declared
        address = (
            declaration.place.removeprefix("tcp://") if declaration is not None else "one address"
        )
        error = misled_members[0].raised
        symptom = (
            Evidence(error.message[:200], misled_members[0].who.name)
            if error is not None
            else Evidence(
                f"in init for {view.now - misled_members[0].phase_since:.0f} s, idle", "black box"
            )
        )
        yield Claim(
            summary=f"{name_by_rank(misled_members)} may have read the addresses of an earlier "
            f"attempt from the store at {address}: {len(earlier)} ranks met there before and have exited",
            who=tuple(m.who for m in misled_members),
            evidence=(
                symptom,
                Evidence("torchrun keeps one store for all of its restarts", "PyTorch"),
            ),
            fix="export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1   # before torchrun; or use a new port each "
            "time",
            certainty=Certainty.LIKELY,
            since=error.raised_at if error is not None else misled_members[0].phase_since,
        )


def _stale_files(view: JobView, rolls: tuple[RollCall, ...]) -> Iterator[Claim]:
    """Report the file of a file:// rendezvous that ranks of an earlier run have joined, as it was before any
    member of this run was released."""
    if not view.joined:
        yield from _stale_files_of_this_host(view, rolls)
    for roll in rolls:
        rank_0 = [m for m in roll.held_members if m.who.rank == 0]
        with_stale_file = [
            m for m in rank_0 if 0 < roll.size <= int(m.facts.get("rendezvous joined", "0"))
        ]
        declaration = with_stale_file[0].declared if with_stale_file else None
        if declaration is None or not view.leads:
            continue
        member, path = with_stale_file[0], declaration.place.removeprefix("file://")
        count, age = member.facts["rendezvous joined"], member.facts.get("rendezvous age", "")
        yield Claim(
            summary=f"the rendezvous file {path} is left over from an earlier run: {count} ranks have joined "
            "it, but none of this run",
            who=(member.who,),
            evidence=(
                Evidence(
                    f"{count} have joined, last written {age} earlier", f"{member.who.host}: {path}"
                ),
                Evidence(declaration.place, declaration.origin),
            ),
            fix=f"rm {shlex.quote(path)}   # once no run uses it",
            since=member.phase_since,
        )


def _stale_files_of_this_host(view: JobView, rolls: tuple[RollCall, ...]) -> Iterator[Claim]:
    """Report such a file if this host has all members. Each read the file when it reached its init; the last
    to do so decides, and only a file older than the job is reported. Members on other hosts may have created
    it legitimately, until as many have joined as there are."""
    for roll in rolls:
        if not roll.is_complete or len(roll.held_members) < roll.size:
            continue
        last_member = max(roll.held_members, key=lambda m: m.phase_since)
        declaration, joined = (
            last_member.declared,
            int(last_member.facts.get("rendezvous joined", "-1")),
        )
        all_here = roll.size <= view.launched and roll.size > 1
        if declaration is None or joined < (0 if all_here else roll.size):
            continue
        path, age = (
            declaration.place.removeprefix("file://"),
            last_member.facts.get("rendezvous age", ""),
        )
        if roll.round > 1:
            yield _claim_left_by_destroy(roll, last_member, path, age)
            continue
        yield Claim(
            summary=f"the rendezvous file {path} is left over from an earlier run: it was written "
            "before this one began",
            who=tuple(m.who for m in roll.held_members if m.who.rank == 0),
            evidence=(
                Evidence(
                    f"last written {age} ago, {joined} clients in it; all {roll.size} members of this "
                    "run are still held",
                    path,
                ),
                Evidence(declaration.place, declaration.origin),
            ),
            fix=f"rm {shlex.quote(path)}   # once no run uses it",
            since=last_member.phase_since,
        )


def _claim_left_by_destroy(roll: RollCall, last_member: Member, path: str, age: str) -> Claim:
    """Report a file that torch failed to remove. In torch/csrc/distributed/c10d/FileStore.cpp a leaving rank
    counts itself out in two steps, and removes the file if both show that it is the last; two that leave at
    the same moment may each miss one."""
    declaration = last_member.declared
    assert declaration is not None
    return Claim(
        summary=f"the rendezvous file {path} is left over from an earlier group of this job: all "
        "ranks destroyed it, but torch did not remove the file",
        who=tuple(m.who for m in roll.held_members if m.who.rank == 0),
        evidence=(
            Evidence(
                f"last written {age} ago, 0 clients in it; all {roll.size} members are held", path
            ),
            Evidence(
                "if the last two ranks destroy a group at the same moment, neither removes it",
                "torch",
            ),
        ),
        fix=f"give each init_process_group call its own file, such as {declaration.place}.{roll.round}",
        since=last_member.phase_since,
    )


def _restarted_view(stuck: float, message: str = "", **changes: Any) -> JobView:
    """Return a view with two ranks that failed and two that their launcher restarted in their places, which
    are in init."""
    old = [
        ended_member(
            r,
            code=1,
            ended_at=20.0,
            member={"worker": 0, "declared": sample_declaration(r, 2), "round": 1},
        )
        for r in (0, 1)
    ]
    raised = Raised(type="RuntimeError", message=message, raised_at=58.0) if message else None
    new = [
        sample_member(
            r,
            worker=0,
            declared=sample_declaration(r, 2),
            round=1,
            phase=Phase.JOINING,
            phase_since=60.0 - stuck,
            started_at=22.0,
            cpu=0.0,
            raised=raised if r == 0 else None,
            who=Who(job="worker", index=r, rank=r, host="a", pid=900 + r),
        )
        for r in (0, 1)
    ]
    above = coming_member(9, worker=0, launcher=True)
    return sample_job(
        above, *old, *new, **({"now": 60.0, "launched": 1, "rolled_at": 5.0} | changes)
    )


def _file_view(joined: int, size: int = 2, round: int = 1, **changes: Any) -> JobView:
    """Return a view with two members of this host, of which the second arrived last and found the file."""
    declarations = [sample_declaration(r, size, place="file:///shared/meeting") for r in (0, 1)]
    facts = {"rendezvous joined": str(joined), "rendezvous age": "3600 s"} if joined >= 0 else {}
    old = {"rendezvous joined": "2", "rendezvous age": "3600 s"}
    first_member = arrived_member(0, declared=declarations[0], facts=old, round=round)
    last_member = arrived_member(
        1, declared=declarations[1], facts=facts, phase_since=61.0, round=round
    )
    return gathering_job(first_member, last_member, **({"launched": 2} | changes))


def _joined_file_view(joined: int) -> JobView:
    declaration = sample_declaration(0, place="file:///shared/meeting")
    facts = {"rendezvous joined": str(joined), "rendezvous age": "3600 s"}
    return led_job(arrived_member(0, declared=declaration, facts=facts))


def _claim_held_port(view: JobView, member: Member, holder: Holder) -> Claim:
    port = Address.from_endpoint(holder.address).port
    which = f"pid {holder.pid} ({holder.command})" if holder.pid else "another process"
    run = "an earlier run" if holder.ours else "an earlier run or another job"
    look = f"ps -o lstart,args -p {holder.pid}"
    return Claim(
        summary=f"port {port} on {member.who.host} is still held by the store of {run}: {which}",
        who=(member.who,),
        evidence=(
            Evidence("bind: Address already in use", holder.address),
            Evidence("answers a ping as a TCPStore does", "greeting"),
        ),
        fix=f"{command_on_host(view, member, look)}   # look before you end it; or use another MASTER_PORT"
        if holder.pid
        else "use another MASTER_PORT",
        since=holder.looked_at,
    )


_OLD = Holder(
    address="a:29500", pid=77, command="python train.py", answer=Answer.STORE, looked_at=95.0
)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "all clients of the store at the address have joined already": (
            example_attempt(Answer.STORE, 3.0, joined=3),
            "the store at node0:29500 belongs to a run that is already complete: all 3 of its clients "
            "have joined",
        ),
        "three ranks have joined the rendezvous file, and none of this run": (
            _joined_file_view(3),
            "the rendezvous file /shared/meeting is left over from an earlier run: 3 ranks have joined "
            "it, but none of this run",
        ),
        "the rendezvous file is older than the run, and all ranks are on this host": (
            _file_view(1),
            "the rendezvous file /shared/meeting is left over from an earlier run: it was written "
            "before this one began",
        ),
        "torch left the rendezvous file of the first init, and the second one hangs": (
            _file_view(0, round=2),
            "the rendezvous file /shared/meeting is left over from an earlier group of this job: all "
            "ranks destroyed it, but torch did not remove the file",
        ),
        "torchrun restarted all ranks, which hang in init at the same store": (
            _restarted_view(15.0),
            "ranks 0-1 may have read the addresses of an earlier attempt from the store at "
            "127.0.0.1:20000: 2 ranks met there before and have exited",
        ),
        "torchrun restarted all ranks, and one finds no peer at an address from the store": (
            _restarted_view(2.0, "Gloo connectFullMesh failed with [...] timed out connecting"),
            "rank 0 may have read the addresses of an earlier attempt from the store at 127.0.0.1:20000: "
            "2 ranks met there before and have exited",
        ),
        "the store of another run holds the port on rank 0's host": (
            led_job(arrived_member(0), holder=_OLD),
            "port 29500 on a is still held by the store of an earlier run or another job: pid 77 (python "
            "train.py)",
        ),
        "the store of an earlier run of this very job holds the port on rank 0's host": (
            led_job(
                arrived_member(0),
                holder=msgspec.structs.replace(_OLD, job="SLURM_JOB_ID=42", ours=True),
            ),
            "port 29500 on a is still held by the store of an earlier run: pid 77 (python train.py)",
        ),
    },
    silent_on={
        "torchrun restarted all ranks, which have been in init for two seconds": _restarted_view(
            2.0
        ),
        "the script has removed the rendezvous file": _file_view(-1),
        "the third of three ranks has not arrived yet": _file_view(1, size=3),
        "ranks on other hosts may have joined the rendezvous file": _file_view(1, launched=0),
        (
            "two of three ranks have joined the rendezvous file: they may run without allaboard"
        ): _joined_file_view(2),
        (
            "one client has joined the store: rank 0 may wait there without allaboard"
        ): example_attempt(Answer.STORE, 30.0, joined=1),
        "another job's store holds the port, which JOIN009 reports": led_job(
            arrived_member(0), holder=msgspec.structs.replace(_OLD, job="ALLABOARD_JOB_ID=B")
        ),
        "how many clients have joined the store is not known": example_attempt(
            Answer.STORE, 30.0, joined=-1
        ),
    },
    drill=("net-earlier-run", "file-stale", "file-left"),
)
