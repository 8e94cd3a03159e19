"""Another program uses the rendezvous port.

## Why it matters
The first worker's bind fails with `Address already in use`, and all others talk to a program that does not
understand them. If that program accepts connections and never answers, PyTorch's rank 1 waits forever,
whatever timeout you set.

## What to do
End that program if it is a leftover (the finding gives its pid if it can be seen). Otherwise use another
port: one below the ephemeral range (`cat /proc/sys/net/ipv4/ip_local_port_range`) that no service uses.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.failure_causality import (
    failed_at,
    is_failure_settling,
    order_failures,
)
from allaboard.analysis.failures.port_in_use import failed_on_taken_port, find_taken_port
from allaboard.analysis.member_names import command_on_host
from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_attempt,
    find_overdue_attempt,
)
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Relations, Rule
from allaboard.facts import Address, Answer, Certainty, Claim, Evidence, Holder, JobView, Member
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    EADDRINUSE,
    PEER_LOST,
    arrived_member,
    ended_member,
    led_job,
    sample_job,
    waiting_member,
)

MIN_HELD_S = 2.0
"""Seconds: an earlier run may be about to close its port."""
ANSWERS = (Answer.MUTE, Answer.HTTP, Answer.OTHER, Answer.CLOSED)
"""Answers of a program that is neither the roll call nor a framework."""
PROGRAM = {
    Answer.MUTE: "a program that accepts connections and never answers",
    Answer.HTTP: "a web server",
    Answer.OTHER: "a program that speaks another protocol",
    Answer.CLOSED: "a program that closes connections at once",
    Answer.GRPC: "a gRPC server (TensorFlow or JAX)",
    Answer.ABOARD: "the roll call of another job",
}
"""Description of the program that gave each answer."""


def check(view: JobView) -> Iterator[Claim]:
    if view.holder is not None and view.holder.answer is not Answer.STORE:
        yield from _held_ports(view, view.holder)
    yield from _failed_binds(view)
    tried = find_attempt(view, *ANSWERS) or find_overdue_attempt(
        view, *ANSWERS, include_serving=True
    )
    if tried is None or view.now - tried.call.since < MIN_HELD_S or tried.call.tries < 2:
        return
    if tried.call.kind:
        return  # it was the roll call that answered
    # A roll call on a stopped or overloaded host would be silent in the same way.
    sure = tried.call.answer in (Answer.HTTP, Answer.OTHER)
    yield Claim(
        summary=f"{PROGRAM[tried.call.answer]} listens at the rendezvous address {tried.call.address}",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"on {tried.host_name}: ss -ltnp 'sport = :{tried.port}'   # end it, or use another port; "
        f"if rank 0 is not there, correct {_origin(tried)}",
        severity=tried.severity,
        certainty=tried.certainty if sure or tried.waited_s >= view.timeout else Certainty.LIKELY,
        since=tried.call.since,
    )


def _origin(tried: RendezvousAttempt) -> str:
    return f"the address in {tried.origin}" if tried.origin else "the address"


def _held_ports(view: JobView, holder: Holder) -> Iterator[Claim]:
    waiting = [m for roll in find_roll_calls(view) for m in roll.held_members]
    if not waiting or view.now - holder.looked_at < MIN_HELD_S:
        return
    if holder.said:
        yield _claim_forbidden_port(waiting[0], holder)
        return
    own_member = _find_member(view, waiting[0].who.host, holder.pid)
    if own_member is not None:
        program = f"{own_member.who.name} of this job (pid {holder.pid})"
    elif holder.pid:
        program = f"pid {holder.pid} ({holder.command})"
    else:
        program = PROGRAM.get(holder.answer, "a program")
    port = Address.from_endpoint(holder.address).port
    yield Claim(
        summary=f"the rendezvous port {port} is in use on this host by {program}",
        who=(waiting[0].who,),
        evidence=(
            Evidence("bind: Address already in use", holder.address),
            Evidence(
                f"it answers like {PROGRAM.get(holder.answer, 'another program')}", "greeting"
            ),
        ),
        fix=_advise_holder(view, waiting[0], holder, own_member is not None),
        since=holder.looked_at,
        retry=_retry(holder, own_member),
    )


def _retry(holder: Holder, own_member: Member | None) -> Retry:
    """Return where the port is free: nowhere if the script takes it itself; here, later, if it is the roll
    call of another job, which ends; else on another host."""
    if own_member is not None:
        return Retry.NEVER
    return Retry.HERE if holder.answer is Answer.ABOARD else Retry.ELSEWHERE


def _claim_forbidden_port(member: Member, holder: Holder) -> Claim:
    """Report a port that no program uses, but on which the system does not allow this user to listen."""
    port = Address.from_endpoint(holder.address).number
    low = port < 1024  # ip(7): needs CAP_NET_BIND_SERVICE
    return Claim(
        summary=f"the rendezvous port {port} cannot be used on this host: {holder.said.lower()}",
        who=(member.who,),
        evidence=(Evidence(f"bind: {holder.said}", holder.address),),
        fix="use a port above 1023, the same on all hosts"
        + ("" if low else f"; to reproduce: python -m http.server {port}"),
        since=holder.looked_at,
        retry=Retry.NEVER,
    )


def _advise_holder(view: JobView, member: Member, holder: Holder, ours: bool) -> str:
    use_other_port = "use another port, the same on all hosts"
    if ours:
        return (
            "the script itself already listens there: call init before that, or let the script use "
            "another port"
        )
    if not holder.pid:
        return use_other_port
    if holder.answer is Answer.ABOARD:  # it is alive, and may be another user's training
        called = f" ({holder.job})" if holder.job else ""
        kill_command = command_on_host(view, member, f"kill {holder.pid}")
        return (
            f"{use_other_port}: another job{called} has its roll call there; only if that job is no longer "
            f"needed: {kill_command}"
        )
    return (
        f"{command_on_host(view, member, f'kill {holder.pid}')}   # if it is a leftover; otherwise "
        f"{use_other_port}"
    )


def _find_member(view: JobView, host: str, pid: int) -> Member | None:
    """Return the member that is this process, or None: the advice never says to end a process of the job
    itself."""
    return next((m for m in view.members if pid and (m.who.host, m.who.pid) == (host, pid)), None)


def _failed_binds(view: JobView) -> Iterator[Claim]:
    """Report a framework that could not listen on its port."""
    failed = order_failures(view)
    for member in failed.root_failures:
        if not failed_on_taken_port(member) or is_failure_settling(view, member):
            continue
        error, port = member.raised, find_taken_port(member.raised, member.declared)
        assert error is not None
        declaration = member.declared
        named = f"port {port}" if port else "its port"
        holder = view.holder
        if holder is not None and (
            member.is_on_other_host or not holder.address.endswith(f":{port}")
        ):
            holder = None  # it holds another port, or was seen on a host other than the member's
        pid = holder.pid if holder is not None else 0
        own_member = next((m for m in view.members if pid and m.event_key == pid), None)
        evidence = [Evidence(f"{error.type}: {error.message[:300]}", member.who.name)]
        if holder is not None and holder.pid:
            evidence.append(Evidence(f"pid {holder.pid}: {holder.command}", "/proc"))
        if declaration is not None and declaration.place:
            evidence.append(Evidence(declaration.place, declaration.origin))
        yield Claim(
            summary=f"{member.who.name} could not listen on {named}: it was already in "
            f"use{_by_holder(own_member, holder)}",
            who=(member.who,),
            evidence=(
                *evidence,
                *(failed.consequence_evidence(member) if failed.root_failures == (member,) else ()),
            ),
            fix=(f"ss -ltnp 'sport = :{port}'" if port else "ss -ltnp")
            + (
                "   # the script itself listens there: let it use another port"
                if own_member is not None
                else "   # shows which program uses it: end it if it is a leftover, or use another port"
            ),
            certainty=Certainty.CERTAIN if "EADDRINUSE" in error.message else Certainty.LIKELY,
            since=failed_at(member),
        )


def _by_holder(own_member: Member | None, holder: Holder | None) -> str:
    """Return " by ..." with the process that uses the port, or "" if it was not seen."""
    if own_member is not None:
        return f" by {own_member.who.name} of this job"
    if holder is None or not holder.pid:
        return ""
    return f" by pid {holder.pid} ({holder.command})"


def _holding(answer: Answer, pid: int = 77) -> JobView:
    holder = Holder(
        address="a:29500",
        pid=pid,
        command="python -m http.server" if pid else "",
        answer=answer,
        looked_at=95.0,
    )
    return led_job(arrived_member(0), holder=holder)


_HELD_BY_OTHER = Holder(
    address="a:29888", pid=77, command="python -m http.server 29888", looked_at=95.0
)
_HELD_BY_MEMBER = Holder(address="a:29888", pid=100, command="python train.py", looked_at=95.0)
_FORBIDDEN = Holder(address="a:443", said="Permission denied", looked_at=95.0)
_BIND_FAILED = ended_member(0, raised=("DistNetworkError", EADDRINUSE))
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a web server listens at the rendezvous address, seen from another host": (
            example_attempt(Answer.HTTP, 3.0, "HTTP/1.1"),
            "a web server listens at the rendezvous address node0:29500",
        ),
        "the program at the rendezvous address accepts connections and never answers": (
            example_attempt(Answer.MUTE, 3.0, "nothing is said"),
            "a program that accepts connections and never answers listens at the rendezvous address "
            "node0:29500",
        ),
        "a web server listens at the rendezvous address, seen from a parameter server's host": (
            example_attempt(Answer.HTTP, 61.0, "HTTP/1.1", serves=True),
            "a web server listens at the rendezvous address node0:29500",
        ),
        "a web server uses the rendezvous port of this host": (
            _holding(Answer.HTTP),
            "the rendezvous port 29500 is in use on this host by pid 77 (python -m http.server)",
        ),
        "a port below 1024, which only root may use": (
            led_job(arrived_member(0), holder=_FORBIDDEN),
            "the rendezvous port 443 cannot be used on this host: permission denied",
        ),
        "the worker itself already uses the rendezvous port": (
            _holding(Answer.GRPC, pid=100),
            "the rendezvous port 29500 is in use on this host by worker 0 of this job (pid 100)",
        ),
        "PyTorch could not listen, and it is known which program uses the port": (
            sample_job(_BIND_FAILED, ended_member(1, raised=PEER_LOST), holder=_HELD_BY_OTHER),
            "worker 0 could not listen on port 29888: it was already in use by pid 77 (python -m "
            "http.server 29888)",
        ),
        "PyTorch could not listen, since the worker itself already uses the port": (
            sample_job(_BIND_FAILED, ended_member(1, raised=PEER_LOST), holder=_HELD_BY_MEMBER),
            "worker 0 could not listen on port 29888: it was already in use by worker 0 of this job",
        ),
        "PyTorch could not listen, and it is not known which program uses the port": (
            sample_job(_BIND_FAILED, waiting_member(1)),
            "worker 0 could not listen on port 29888: it was already in use",
        ),
        "PyTorch could not listen on another host than the one whose program was seen": (
            sample_job(
                msgspec.structs.replace(_BIND_FAILED, key=1 << 32 | 100),
                waiting_member(1),
                holder=_HELD_BY_OTHER,
            ),
            "worker 0 could not listen on port 29888: it was already in use",
        ),
    },
    silent_on={
        "the script could not listen on a port of its own": sample_job(
            ended_member(0, raised=("OSError", "[Errno 98] Address already in use")),
            waiting_member(1),
        ),
        "a web server was first seen one second ago": example_attempt(Answer.HTTP, 1.0),
        (
            "a parameter server has seen a web server for 30 seconds, less than the timeout"
        ): example_attempt(Answer.HTTP, 30.0, serves=True),
        "PyTorch's store uses the port, which JOIN008 reports": _holding(Answer.STORE),
        "the framework's own gRPC server listens on the port": example_attempt(Answer.GRPC, 30.0),
    },
    drill=("net-web-server", "net-silent-listener", "port-taken"),
    relations=Relations(
        raised_as=r"Could not start gRPC server|EADDRINUSE|[Aa]ddress already in use"
    ),
)
