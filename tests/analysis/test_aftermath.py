"""Exceptions that a member raised from the loss of a peer, or while it handled that loss."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import ChainedException, Frame, Member
from allaboard.facts.samples import USER, ended_member, sample_job

_LIB = "/v/lib/python3.11/site-packages"
_C10D = Frame(f"{_LIB}/torch/distributed/distributed_c10d.py", 2800, "all_reduce")
_REDIS = Frame(f"{_LIB}/redis/connection.py", 200, "connect")
LOST = ChainedException(
    type="RuntimeError",
    message="[/pair.cc:537] Read error [127.0.0.1]:11948: Connection reset by peer",
    frames=(_C10D, USER),
)
REDIS = ChainedException(
    type="ConnectionError", message="Connection refused", frames=(_REDIS, USER)
)


def _raised(
    rank: int, type_: str, message: str, at: float = 95.0, **chain: ChainedException
) -> Member:
    member = ended_member(rank, at, raised=(type_, message))
    assert member.raised is not None
    raised = msgspec.structs.replace(member.raised, chain=tuple(chain.values()))
    return msgspec.structs.replace(member, raised=raised)


def _from(link: ChainedException) -> ChainedException:
    return msgspec.structs.replace(link, is_cause=True)


def test_a_trainers_own_exception_about_a_lost_peer_is_no_cause() -> None:
    view = sample_job(
        _raised(0, "StepFailed", "step 7 failed", 94.9, cause=_from(LOST)),
        ended_member(1, code=3),
        _raised(2, "StepFailed", "step 7 failed", 94.9, cause=_from(LOST)),
    )
    order = order_failures(view)
    assert [m.who.rank for m in order.root_failures] == [1]
    assert [str(e) for e in order.consequence_evidence(order.root_failures[0])] == [
        "ranks 0 and 2 failed as a consequence [order of exits]"
    ]


def test_what_fails_in_the_handler_of_a_lost_peer_is_told_beside_the_cause() -> None:
    full = "[Errno 28] No space left on device: '/ckpt/last.pt'"
    view = sample_job(
        _raised(0, "OSError", full, 95.1, handled=LOST),
        _raised(1, "KeyError", "'label_7'"),
        _raised(2, "OSError", full, 95.2, handled=LOST),
    )
    order = order_failures(view)
    assert [m.who.rank for m in order.root_failures] == [1]
    assert [str(e) for e in order.consequence_evidence(order.root_failures[0])][1:] == [
        f"worker 0 then raised OSError: {full} at {USER} [while it handled that]"
    ]


@pytest.mark.parametrize(
    "others",
    [
        (),
        (_raised(1, "RuntimeError", LOST.message), _raised(2, "RuntimeError", LOST.message)),
        (ended_member(1, signal=15),),  # a launcher ends the others when the first one fails
    ],
)
def test_a_job_that_went_on_below_the_handler_has_the_failure_of_whom_it_is(
    others: tuple[Member, ...],
) -> None:
    failed = _raised(0, "KeyError", "'label_7'", handled=LOST)
    assert order_failures(sample_job(failed, *others)).root_failures[0] is failed


@pytest.mark.parametrize(
    ("chain", "is_lost"),
    [
        ((_from(LOST),), True),
        ((_from(REDIS),), False),
        ((LOST,), False),  # it was being handled: see the order of all failures
        ((_from(REDIS), _from(LOST)), True),
        ((REDIS, LOST), False),
    ],
)
def test_a_chain_tells_of_a_lost_peer(chain: tuple[ChainedException, ...], is_lost: bool) -> None:
    links = {f"link{n}": link for n, link in enumerate(chain)}
    assert has_lost_peer(_raised(0, "TrainingError", "gave up", **links)) is is_lost
