"""Another program holds the port where the members are to meet.

## Why it matters
The first member's bind fails with `Address already in use`, and all others talk to a program that
does not understand them: PyTorch's rank 1 waits for ever before a silent listener, whatever timeout it
was given.

## What to do
End that program if it is a leftover (its pid is given where it could be seen), or take another port:
one below the ephemeral range (`cat /proc/sys/net/ipv4/ip_local_port_range`) that no service uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.calling import attempt, calling
from allaboard.facts import (
    Answer,
    Certainty,
    Claim,
    Evidence,
    Holder,
    JobView,
    Stage,
)
from allaboard.facts.samples import gathering, held
from allaboard.rollcall.roll import roll_calls

TURNED_AWAY = ("other-job: ", "no-secret: ", "tls: ", "version: ")
"""How the roll call's own refusals begin."""
PATIENCE = 2.0
"""Seconds: an earlier run may just be closing."""
SAID = {
    Answer.MUTE: "a program that accepts and says nothing",
    Answer.HTTP: "a web server",
    Answer.OTHER: "a program that speaks another protocol",
    Answer.CLOSED: "a program that hangs up at once",
    Answer.GRPC: "a gRPC server (TensorFlow or JAX)",
}


def check(view: JobView) -> Iterator[Claim]:
    if view.holder is not None and view.holder.answer is not Answer.STORE:
        yield from _held(view, view.holder)
    tried = attempt(view, Answer.MUTE, Answer.HTTP, Answer.OTHER, Answer.CLOSED)
    if tried is None or view.now - tried.call.since < PATIENCE or tried.call.tries < 2:
        return
    if tried.call.answer is Answer.OTHER and tried.call.said.startswith(TURNED_AWAY):
        return  # it was the roll call that answered
    # A roll call whose host is stopped or overloaded would be as mute.
    sure = tried.call.answer in (Answer.HTTP, Answer.OTHER)
    yield Claim(
        summary=f"{SAID[tried.call.answer]} answers at {tried.call.address}, where all are to meet",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {tried.name}: ss -ltnp 'sport = :{tried.port}'   # end it, or take another port",
        certainty=Certainty.CERTAIN if sure or tried.waited >= view.timeout else Certainty.LIKELY,
        since=tried.call.since,
    )


def _held(view: JobView, holder: Holder) -> Iterator[Claim]:
    waiting = [m for roll in roll_calls(view) for m in roll.held]
    if not waiting or view.now - holder.at < PATIENCE:
        return
    who = (
        f"pid {holder.pid} ({holder.command})"
        if holder.pid
        else SAID.get(holder.answer, "a program")
    )
    port = holder.address.rpartition(":")[2]
    yield Claim(
        summary=f"port {port}, where all are to meet, is held on this host by {who}",
        who=(waiting[0].who,),
        evidence=(
            Evidence("bind: Address already in use", holder.address),
            Evidence(f"it answers as {SAID.get(holder.answer, 'another program')}", "greeting"),
        ),
        fix=(f"kill {holder.pid}   # if it is a leftover; else" if holder.pid else "")
        + " take another port, the same on every host",
        since=holder.at,
    )


def _holding(answer: Answer, pid: int = 77) -> JobView:
    holder = Holder(
        address="a:29500",
        pid=pid,
        command="python -m http.server" if pid else "",
        answer=answer,
        at=95.0,
    )
    return gathering(held(0), joined=True, leads=True, launched=1, holder=holder)


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "seen from another host": (
            calling(Answer.HTTP, 3.0, "HTTP/1.1"),
            "a web server answers at node0:29500, where all are to meet",
        ),
        "a silent listener": (
            calling(Answer.MUTE, 3.0, "nothing is said"),
            "a program that accepts and says nothing answers at node0:29500, where all are to meet",
        ),
        "on the host itself": (
            _holding(Answer.HTTP),
            "port 29500, where all are to meet, is held on this host by pid 77 (python -m http.server)",
        ),
    },
    silent_on={
        "just seen": calling(Answer.HTTP, 1.0),
        "a store is another rule's": _holding(Answer.STORE),
        "the framework's own server": calling(Answer.GRPC, 30.0),
    },
    since="0.1",
    drill=("net-web-server", "net-silent-listener"),
)
