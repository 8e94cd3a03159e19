"""Another program holds the port where the workers are to meet.

## Why it matters
The first worker's bind fails with `Address already in use`, and all others talk to a program that does not
understand them. If that program listens in silence, PyTorch's rank 1 waits forever, whatever timeout you
gave.

## What to do
End that program if it is a leftover (its pid is given if it could be seen). Otherwise take another port:
one below the ephemeral range (`cat /proc/sys/net/ipv4/ip_local_port_range`) that no service uses.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import failed_at, failures, undecided
from allaboard.analysis.failures.port_in_use import lacks_port, port_taken
from allaboard.analysis.member_names import on_host
from allaboard.analysis.roll_call.rendezvous_attempt import Attempt, attempt, calling, overdue
from allaboard.analysis.roll_call.roll_call import roll_calls
from allaboard.contracts import Relations, Rule
from allaboard.facts import (
    Answer,
    Certainty,
    Claim,
    Evidence,
    Holder,
    JobView,
    Member,
    Stage,
)
from allaboard.facts.samples import EADDRINUSE, ended, gathering, held, job, waiting

PATIENCE = 2.0
"""Seconds: an earlier run may just be closing."""
SPEAKS = (Answer.MUTE, Answer.HTTP, Answer.OTHER, Answer.CLOSED)
SAID = {
    Answer.MUTE: "a program that accepts and says nothing",
    Answer.HTTP: "a web server",
    Answer.OTHER: "a program that speaks another protocol",
    Answer.CLOSED: "a program that hangs up at once",
    Answer.GRPC: "a gRPC server (TensorFlow or JAX)",
    Answer.ABOARD: "the roll call of another job",
}


def check(view: JobView) -> Iterator[Claim]:
    if view.holder is not None and view.holder.answer is not Answer.STORE:
        yield from _held(view, view.holder)
    yield from _raised(view)
    tried = attempt(view, *SPEAKS) or overdue(view, *SPEAKS, served=True)
    if tried is None or view.now - tried.call.since < PATIENCE or tried.call.tries < 2:
        return
    if tried.call.kind:
        return  # it was the roll call that answered
    # A roll call whose host is stopped or overloaded would be as mute.
    sure = tried.call.answer in (Answer.HTTP, Answer.OTHER)
    yield Claim(
        summary=f"{SAID[tried.call.answer]} listens at {tried.call.address}, where all are to meet",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {tried.name}: ss -ltnp 'sport = :{tried.port}'   # end it, or take another port; "
        f"if rank 0 is not there, correct {_origin(tried)}",
        severity=tried.severity,
        certainty=tried.certainty if sure or tried.waited >= view.timeout else Certainty.LIKELY,
        since=tried.call.since,
    )


def _origin(tried: Attempt) -> str:
    return f"the address in {tried.origin}" if tried.origin else "the address"


def _held(view: JobView, holder: Holder) -> Iterator[Claim]:
    waiting = [m for roll in roll_calls(view) for m in roll.held]
    if not waiting or view.now - holder.at < PATIENCE:
        return
    if holder.said:
        yield _barred(waiting[0], holder)
        return
    mine = _member(view, waiting[0].who.host, holder.pid)
    if mine is not None:
        who = f"{mine.who.name} of this job itself (pid {holder.pid})"
    elif holder.pid:
        who = f"pid {holder.pid} ({holder.command})"
    else:
        who = SAID.get(holder.answer, "a program")
    port = holder.address.rpartition(":")[2]
    yield Claim(
        summary=f"port {port}, where all are to meet, is held on this host by {who}",
        who=(waiting[0].who,),
        evidence=(
            Evidence("bind: Address already in use", holder.address),
            Evidence(f"it answers as {SAID.get(holder.answer, 'another program')}", "greeting"),
        ),
        fix=_freed(view, waiting[0], holder, mine is not None),
        since=holder.at,
    )


def _barred(one: Member, holder: Holder) -> Claim:
    """Nobody holds it: this system does not let us listen there."""
    port = int(holder.address.rpartition(":")[2])
    low = port < 1024  # ip(7): wants CAP_NET_BIND_SERVICE
    return Claim(
        summary=f"nothing can listen on port {port} of this host, where all are to meet: "
        f"{holder.said.lower()}",
        who=(one.who,),
        evidence=(Evidence(f"bind: {holder.said}", holder.address),),
        fix="take a port above 1023, the same on every host"
        + ("" if low else f", or see why: python -m http.server {port}"),
        since=holder.at,
    )


def _freed(view: JobView, one: Member, holder: Holder, ours: bool) -> str:
    other = "take another port, the same on every host"
    if ours:
        return "its script listens there already: call the roll before that, or give the script another port"
    if not holder.pid:
        return other
    if holder.answer is Answer.ABOARD:  # it is alive, and may be somebody's training
        called = f" ({holder.job})" if holder.job else ""
        ended = on_host(view, one, f"kill {holder.pid}")
        return f"{other}: another job{called} gathers there; only if nobody needs that job any more: {ended}"
    return f"{on_host(view, one, f'kill {holder.pid}')}   # if it is a leftover; else {other}"


def _member(view: JobView, host: str, pid: int) -> Member | None:
    """The process of this job that is this one: nobody is told to end it for the job's sake."""
    return next((m for m in view.members if pid and (m.who.host, m.who.pid) == (host, pid)), None)


def _raised(view: JobView) -> Iterator[Claim]:
    """The framework itself wanted to listen, and could not."""
    found = failures(view)
    for one in found.began:
        if not lacks_port(one) or undecided(view, one):
            continue
        error, port = one.raised, port_taken(one.raised, one.declared)
        assert error is not None
        told = one.declared
        named = f"port {port}" if port else "its port"
        holder = view.holder
        if holder is not None and (one.elsewhere or not holder.address.endswith(f":{port}")):
            holder = None  # of another port, or seen on another host than the one that wanted it
        pid = holder.pid if holder is not None else 0
        mine = next((m for m in view.members if pid and m.called == pid), None)
        evidence = [Evidence(f"{error.type}: {error.message[:300]}", one.who.name)]
        if holder is not None and holder.pid:
            evidence.append(Evidence(f"pid {holder.pid}: {holder.command}", "/proc"))
        if told is not None and told.place:
            evidence.append(Evidence(told.place, told.origin))
        yield Claim(
            summary=f"{named} was taken when {one.who.name} wanted to listen there{_by(mine, holder)}",
            who=(one.who,),
            evidence=(*evidence, *(found.of_it(one) if found.began == (one,) else ())),
            fix=(f"ss -ltnp 'sport = :{port}'" if port else "ss -ltnp")
            + (
                "   # the script listens there itself: give it another port"
                if mine is not None
                else "   # who holds it? end that program if it is a leftover, or take another port"
            ),
            certainty=Certainty.CERTAIN if "EADDRINUSE" in error.message else Certainty.LIKELY,
            since=failed_at(one),
        )


def _by(mine: Member | None, holder: Holder | None) -> str:
    """Who holds it, where that was seen."""
    if mine is not None:
        return f": {mine.who.name} of this job holds it"
    if holder is None or not holder.pid:
        return ""
    return f": pid {holder.pid} ({holder.command}) holds it"


def _holding(answer: Answer, pid: int = 77) -> JobView:
    holder = Holder(
        address="a:29500",
        pid=pid,
        command="python -m http.server" if pid else "",
        answer=answer,
        at=95.0,
    )
    return gathering(held(0), joined=True, leads=True, launched=1, holder=holder)


_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
_SERVED = Holder(address="a:29888", pid=77, command="python -m http.server 29888", at=95.0)
_OWN = Holder(address="a:29888", pid=100, command="python train.py", at=95.0)
_BARRED = Holder(address="a:443", said="Permission denied", at=95.0)
_REFUSED = ended(0, raised=("DistNetworkError", EADDRINUSE))
RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "seen from another host": (
            calling(Answer.HTTP, 3.0, "HTTP/1.1"),
            "a web server listens at node0:29500, where all are to meet",
        ),
        "a silent listener": (
            calling(Answer.MUTE, 3.0, "nothing is said"),
            "a program that accepts and says nothing listens at node0:29500, where all are to meet",
        ),
        "seen from a parameter server's host": (
            calling(Answer.HTTP, 61.0, "HTTP/1.1", serves=True),
            "a web server listens at node0:29500, where all are to meet",
        ),
        "on the host itself": (
            _holding(Answer.HTTP),
            "port 29500, where all are to meet, is held on this host by pid 77 (python -m http.server)",
        ),
        "a port that only root may have": (
            gathering(held(0), joined=True, leads=True, launched=1, holder=_BARRED),
            "nothing can listen on port 443 of this host, where all are to meet: permission denied",
        ),
        "by the member that asks": (
            _holding(Answer.GRPC, pid=100),
            "port 29500, where all are to meet, is held on this host by worker 0 of this job itself "
            "(pid 100)",
        ),
        "the framework found it taken": (
            job(_REFUSED, ended(1, raised=_LOST), holder=_SERVED),
            "port 29888 was taken when worker 0 wanted to listen there: pid 77 (python -m http.server "
            "29888) holds it",
        ),
        "a server of its own": (
            job(_REFUSED, ended(1, raised=_LOST), holder=_OWN),
            "port 29888 was taken when worker 0 wanted to listen there: worker 0 of this job holds it",
        ),
        "and who holds it is not to be seen": (
            job(_REFUSED, waiting(1)),
            "port 29888 was taken when worker 0 wanted to listen there",
        ),
        "on another host than the holder that was seen": (
            job(msgspec.structs.replace(_REFUSED, key=1 << 32 | 100), waiting(1), holder=_SERVED),
            "port 29888 was taken when worker 0 wanted to listen there",
        ),
    },
    silent_on={
        "a port of the user's own": job(
            ended(0, raised=("OSError", "[Errno 98] Address already in use")), waiting(1)
        ),
        "just seen": calling(Answer.HTTP, 1.0),
        "a server that was up early": calling(Answer.HTTP, 30.0, serves=True),
        "a store is another rule's": _holding(Answer.STORE),
        "the framework's own server": calling(Answer.GRPC, 30.0),
    },
    since="0.1",
    drill=("net-web-server", "net-silent-listener", "port-taken"),
    relations=Relations(
        raised_as=r"Could not start gRPC server|EADDRINUSE|[Aa]ddress already in use"
    ),
)
