"""Of members that were lost one after another, only the one with which it began is named."""

from __future__ import annotations

from allaboard.diagnosis.logs.message_relations import relate_messages
from allaboard.facts import Heard, Place, Speaker, Who

LOSSES = frozenset(("EXIT005", "LOG002"))


def loss(
    says: str,
    *writers: int,
    about: tuple[int, ...] = (),
    silent: tuple[int, ...] = (),
    rule: str = "EXIT005",
    job: str = "worker",
) -> Heard:
    speakers = tuple(
        Speaker(place=Place(file=f"rank{r}.log", line=9), line=says, rank=r) for r in writers
    )
    return Heard(
        rule=rule,
        says=says,
        speakers=speakers,
        fix=f"look at {says.partition(' went')[0].partition(' stopped')[0]}",
        about=tuple(Who(job=job, index=i, rank=i) for i in about),
        silent=silent,
    )


def timeout(*writers: int, silent: tuple[int, ...] = ()) -> Heard:
    return loss("a rank waited 10000 ms in a collective", *writers, silent=silent, rule="LOG001")


def related(*heard: Heard) -> list[tuple[str, tuple[int, ...]]]:
    messages = relate_messages(heard, {}, LOSSES | {"LOG001"}, frozenset(), LOSSES)
    return [(m.says, tuple(w.index for w in m.about)) for m in messages]


def test_a_victim_that_wrote_of_its_own_loss_is_not_named_beside_the_first() -> None:
    silence = loss("worker 2, worker 1 stopped sending heartbeats", 0, about=(2, 1), rule="LOG002")
    other = loss("worker 3 went away in the middle of a call", 2, about=(3,))
    assert related(silence, other) == [
        ("worker 1 stopped sending heartbeats", (1,)),
        ("worker 3 went away in the middle of a call", (3,)),
    ]


def test_one_lost_member_is_one_finding_and_a_broken_connection_says_more() -> None:
    silence = loss("worker 2, worker 1 stopped sending heartbeats", 0, about=(2, 1), rule="LOG002")
    broken = loss("worker 1 went away in the middle of a call", 2, about=(1,))
    assert related(silence, broken) == [("worker 1 went away in the middle of a call", (1,))]


def test_the_leader_that_lost_a_peer_itself_is_a_victim() -> None:
    broken = loss("a peer at 10.0.0.2 went away in the middle of a collective", 0, silent=(1,))
    leader = loss("the leader (process 0, where the coordination service is) went away", 2)
    assert [says for says, _ in related(broken, leader)] == [broken.says]


def test_the_leader_that_wrote_nothing_is_where_it_began() -> None:
    broken = loss("a peer at 10.0.0.1 went away in the middle of a collective", 1, silent=(0,))
    leader = loss("the leader (process 0, where the coordination service is) went away", 2)
    assert len(related(broken, leader)) == 1


def test_where_all_wrote_nobody_is_left_out() -> None:
    first = loss("worker 1 went away in the middle of a call", 0, about=(1,))
    second = loss("worker 0 went away in the middle of a call", 1, about=(0,))
    assert len(related(first, second)) == 2


def test_a_server_is_no_rank() -> None:
    server = loss("ps 1 went away in the middle of a call", 0, about=(1,), job="ps")
    worker = loss("worker 2 went away in the middle of a call", 1, about=(2,))
    assert len(related(server, worker)) == 2


CLOSED = "a peer at 10.0.0.2 went away in the middle of a collective"


def test_who_gave_up_waiting_closed_the_connections_of_the_rest() -> None:
    assert [says for says, _ in related(timeout(0, 1), loss(CLOSED, 2))] == [timeout(0).says]


def test_a_rank_that_wrote_nothing_is_where_it_began() -> None:
    kept = related(timeout(0, silent=(1,)), loss(CLOSED, 2, silent=(1,)))
    assert CLOSED in [says for says, _ in kept]


def test_a_loss_before_any_timeout_is_kept() -> None:
    assert [says for says, _ in related(loss(CLOSED, 0, 2))] == [CLOSED]
    # One rank wrote both: which came first is in its log alone.
    assert len(related(timeout(2), loss(CLOSED, 2))) == 2


def test_a_store_that_serves_and_a_port_that_was_taken_are_two_firsts() -> None:
    taken = loss("port 3 was taken when rank 0 wanted to listen there", 2, rule="NET005")
    counted = loss(
        "the store of rank 0 counted 2 of 3 members before its timeout", 0, rule="JOIN001"
    )
    (says, _), *more = related(counted, taken)
    assert says.startswith("two processes of the job take themselves for rank 0") and not more
    # Alone, or of one and the same process, neither proves that.
    assert related(taken) == [(taken.says, ())]
    again = loss("the store of rank 0 counted 2 of 3 members before its timeout", 2, rule="JOIN001")
    assert len(related(again, taken)) == 2
