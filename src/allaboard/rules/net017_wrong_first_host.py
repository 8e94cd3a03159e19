"""The rendezvous address leads to a host other than rank 0's.

## Why it matters
PyTorch's rank 0, JAX's process 0 and TensorFlow's chief each open the port on their own host. A worker may
have another host's address because of a typo, an old list of hosts, or its own /etc/hosts. Its connections
are refused for as long as its framework waits, and the others see only that it never joins.

## What to do
Give all hosts the same MASTER_ADDR (TF_CONFIG, coordinator address): that of the host where rank 0 runs. If
the name is the same but the address is not, compare `getent hosts NAME` on the two hosts.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from allaboard.analysis.network.link_faults import example_four_hosts
from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_attempt,
)
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Address, Answer, Certainty, Claim, Evidence, JobView, Knock, Who
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import NOW

MIN_REFUSED_S = 4.0
"""Seconds before rank 0's refused connections are reported: the address may be forwarded to its own host."""


MIN_STRAYED_S = 1.5
"""Seconds in which a host that connected to the wrong one may still find the right one by itself."""


def check(view: JobView) -> Iterator[Claim]:
    yield from _strayed_hosts(view)
    tried = find_attempt(view, Answer.OTHER, Answer.REFUSED)
    if tried is None:
        return
    if tried.call.kind == "elsewhere":
        if not tried.is_deputys:
            yield _claim_wrong_host(tried, tried.call.said)
        return
    if tried.is_published:  # with etcd any host may lead, and rank 0 follow it
        return
    is_rank_0_refused = tried.member.who.rank == 0 and tried.call.answer is Answer.REFUSED
    if is_rank_0_refused and not tried.call.shook and view.now - tried.call.since >= MIN_REFUSED_S:
        yield _claim_foreign_address(tried)


def _claim_wrong_host(tried: RendezvousAttempt, answer_text: str) -> Claim:
    """Report the answer of a host that is not the leader and says which host it is."""
    answering_host, _, right = answer_text.partition(", and itself goes to ")
    right = right.partition(", ")[0]  # it may add how far it has come
    own_host = tried.member.who.host
    name = shlex.quote(tried.host_name)
    same_name = Address.from_endpoint(right).host == tried.host_name
    return Claim(
        summary=f"{own_host} connects to the wrong host: {_configured_address(tried)} leads to "
        f"{answering_host.removeprefix('this is ')}",
        who=(tried.member.who,),
        evidence=(*tried.evidence, Evidence(answer_text, "answer from there")),
        fix=f"getent hosts {name}   # on {own_host} and on the others; correct the entry that differs"
        if same_name
        else f"on {own_host}: use {right} instead of {tried.call.address}"
        if right and right != tried.call.address and tried.call.is_proven
        else f"on {own_host}: use the address of the host where rank 0 runs",
        # A published address may be that of a host which leads no longer.
        certainty=Certainty.CERTAIN
        if tried.call.is_proven and not tried.is_published
        else Certainty.LIKELY,
        since=tried.call.since,
    )


def _strayed_hosts(view: JobView) -> Iterator[Claim]:
    """Report, on the leader, hosts that connected to another host instead: that host reports them."""
    here = {m.who.host for m in view.members}
    waited = any(roll.held_members and roll.missing for roll in find_roll_calls(view))
    for knock in view.knocks if view.leads and waited else ():
        late = view.now - knock.knocked_at >= MIN_STRAYED_S
        if knock.kind == "elsewhere" and late and knock.host not in here:
            yield Claim(
                summary=f"{knock.host} connects to the wrong host: {knock.said}",
                who=(Who(index=-1, host=knock.host),),
                evidence=(Evidence(f"{knock.host} connected there", knock.said.partition(",")[0]),),
                fix=f"on {shlex.quote(knock.host)}: use the address of the host where rank 0 runs "
                "(MASTER_ADDR, TF_CONFIG, coordinator address), and check its /etc/hosts",
                since=knock.knocked_at,
            )


def _claim_foreign_address(tried: RendezvousAttempt) -> Claim:
    """Report that rank 0's own host is not at the rendezvous address, although rank 0 opens the port
    there."""
    own_host = tried.member.who.host
    return Claim(
        summary=f"rank 0 runs on {own_host}, but {_configured_address(tried)} leads to another host, "
        "where nothing listens",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on every host: use an address of {own_host} (ip -br addr), or start rank 0 on "
        f"{tried.host_name}",
        # The address of a Kubernetes service may be forwarded to this host, for the framework's port only.
        certainty=Certainty.LIKELY,
        since=tried.call.since,
    )


def _configured_address(tried: RendezvousAttempt) -> str:
    origin = tried.origin
    name = "MASTER_ADDR" if "MASTER_ADDR" in origin else origin
    if not name:
        return tried.call.address
    return (
        f"{name}={tried.host_name}" if name == "MASTER_ADDR" else f"{tried.call.address} ({name})"
    )


_WHY = "this is h2, which holds rank 2, not rank 0, and itself goes to h0:29500"


def _rank_0_refused_view(address: str = "node0:29500") -> JobView:
    """Return a view in which rank 0's connection is refused at this address of another host."""
    view = example_attempt(Answer.REFUSED, 6.0, "Connection refused")
    (member,) = view.members
    assert member.declared is not None
    declaration = msgspec.structs.replace(member.declared, rank=0)
    identity = msgspec.structs.replace(member.who, rank=0, index=0)
    assert view.call is not None
    return msgspec.structs.replace(
        view,
        members=(msgspec.structs.replace(member, who=identity, declared=declaration),),
        call=msgspec.structs.replace(view.call, address=address),
    )


def _deputy_asked_view() -> JobView:
    """Return a view in which another host than the first one was asked, and sends this one on."""
    view = example_attempt(Answer.OTHER, 1.0, _WHY, kind="elsewhere")
    assert view.call is not None
    return msgspec.structs.replace(
        view, call=msgspec.structs.replace(view.call, address="h2:29500")
    )


def _strayed_view(host: str, knocked_at: float = NOW - 4.0) -> JobView:
    """Return a view of the leader with three of four hosts, while the fourth connected to h1."""
    answering_host = "h1, which holds rank 1, not rank 0"
    knock = Knock(
        peer="10.0.0.3", kind="elsewhere", said=answering_host, host=host, knocked_at=knocked_at
    )
    members = tuple(m for m in example_four_hosts().members if m.who.rank != 2)
    return msgspec.structs.replace(example_four_hosts(), members=members, knocks=(knock,))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "MASTER_ADDR leads to another host of the job, which says so": (
            example_attempt(Answer.OTHER, 1.0, _WHY, kind="elsewhere"),
            "a connects to the wrong host: MASTER_ADDR=node0 leads to h2, which holds rank 2, not rank 0",
        ),
        "another host reports to the leader who has connected to it by mistake": (
            _strayed_view("h2"),
            "h2 connects to the wrong host: h1, which holds rank 1, not rank 0",
        ),
        "MASTER_ADDR on rank 0's own host leads to another host": (
            _rank_0_refused_view(),
            "rank 0 runs on a, but MASTER_ADDR=node0 leads to another host, where nothing listens",
        ),
    },
    silent_on={
        "a host connected to the wrong one first, and has joined since": _strayed_view("h3"),
        "a host was asked only because the first one was away, and sends this one on": _deputy_asked_view(),
        "a host connected to the wrong one half a second ago": _strayed_view("h2", NOW - 0.5),
        "rank 1 is refused, but rank 0 may still join": example_attempt(
            Answer.REFUSED, 6.0, "refused"
        ),
        "rank 0 is refused by a leader that etcd names and that has just gone": _rank_0_refused_view(
            "h1:41234"
        ),
        "another program answers, which NET005 reports": example_attempt(
            Answer.OTHER, 6.0, "b'220 smtp'"
        ),
    },
    retry=Retry.NEVER,
    drill=(
        "wrong-first-host",
        "wrong-first-host-jax",
        "wrong-first-host-of-first",
        "hosts-file-swapped",
        "wrong-chief",
    ),
)
