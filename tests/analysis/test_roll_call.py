"""Who is here, who is late, who is missing, and who is there twice."""

from __future__ import annotations

import msgspec

from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.facts import Member, Phase, Who
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    sample_declaration,
    sample_member,
)


def test_nobody_has_answered() -> None:
    assert find_roll_calls(gathering_job(coming_member(0), coming_member(1))) == ()


def test_complete_when_every_rank_is_here() -> None:
    (roll,) = find_roll_calls(
        gathering_job(arrived_member(0), arrived_member(1), arrived_member(2))
    )
    assert roll.is_complete and roll.size == 3 and not roll.missing


def test_late_gone_and_never_heard_of_are_told_apart() -> None:
    early = {"phase": coming_member(0).phase, "declared": None, "round": 0}
    view = gathering_job(
        arrived_member(0, 4), coming_member(1), ended_member(2, code=1, member=early)
    )
    (roll,) = find_roll_calls(view)
    assert [m.who.rank for m in roll.late] == [1]
    assert [m.who.rank for m in roll.ended] == [2]
    assert roll.missing == (1, 2, 3)
    assert roll.unheard_ranks == (3,)


def test_a_rank_of_another_world_does_not_count() -> None:
    (roll,) = find_roll_calls(
        gathering_job(
            arrived_member(0),
            arrived_member(1),
            arrived_member(2, declared=sample_declaration(0, 1)),
        )
    )
    assert roll.duplicates == () and roll.missing == (2,) and not roll.is_complete


def test_a_second_round_waits_for_all_again() -> None:
    view = gathering_job(
        arrived_member(0, round=2), sample_member(1, round=1), sample_member(2, round=1)
    )
    (roll,) = find_roll_calls(view)
    assert roll.round == 2 and roll.missing == (1, 2)
    assert [m.who.rank for m in roll.late] == [1, 2]


def test_two_jobs_under_one_command_are_two_roll_calls() -> None:
    other = "tcp://127.0.0.1:30000"
    view = gathering_job(
        arrived_member(0, 2, worker=0),
        arrived_member(1, 2, worker=0),
        arrived_member(2, worker=0, declared=sample_declaration(0, 2, place=other)),
        arrived_member(3, worker=0, declared=sample_declaration(1, 2, place=other)),
        launched=1,
    )
    rolls = find_roll_calls(view)
    assert [r.is_complete for r in rolls] == [True, True]


def test_one_wrong_address_under_one_command_is_one_roll_call() -> None:
    view = gathering_job(
        arrived_member(0, 2, worker=0),
        arrived_member(
            1, worker=0, declared=sample_declaration(1, 2, place="tcp://127.0.0.1:30000")
        ),
        launched=1,
    )
    assert len(find_roll_calls(view)) == 1


def test_members_of_worlds_of_one_go_on_when_nobody_else_may_come() -> None:
    alone = [arrived_member(r, declared=sample_declaration(0, 1)) for r in range(2)]
    assert [r.is_complete for r in find_roll_calls(gathering_job(*alone, launched=2))] == [
        True,
        True,
    ]
    assert find_roll_calls(gathering_job(alone[0], coming_member(1), launched=2, now=61.0)) == ()
    late = find_roll_calls(gathering_job(alone[0], coming_member(1), launched=2, now=75.0))
    assert [r.is_complete for r in late] == [True]


def test_one_worker_alone_goes_on_at_once() -> None:
    (roll,) = find_roll_calls(
        gathering_job(arrived_member(0, declared=sample_declaration(0, 1)), launched=1)
    )
    assert roll.is_complete


def test_who_has_ended_has_no_part_in_a_later_smaller_world() -> None:
    view = gathering_job(
        arrived_member(0, round=2, declared=sample_declaration(0, 2)),
        arrived_member(1, round=2, declared=sample_declaration(1, 2)),
        ended_member(2, code=0, member={"round": 1}),
        launched=3,
    )
    (roll,) = find_roll_calls(view)
    assert roll.is_complete and roll.size == 2


def test_workers_of_one_command_may_make_two_worlds() -> None:
    def one(worker: int, rank: int, pair: int) -> Member:
        place = f"file:///d/pair_{pair}"
        return arrived_member(worker, declared=sample_declaration(rank, 2, place=place))

    early = gathering_job(
        one(0, 0, 0), one(2, 0, 1), coming_member(1), coming_member(3), launched=4
    )
    assert [(r.is_complete, r.duplicates) for r in find_roll_calls(early)] == [
        (False, ()),
        (False, ()),
    ]
    four = (one(0, 0, 0), one(1, 1, 0), one(2, 0, 1), one(3, 1, 1))
    assert [r.is_complete for r in find_roll_calls(gathering_job(*four, launched=4))] == [
        True,
        True,
    ]


def test_a_wrong_place_is_no_second_world() -> None:
    view = gathering_job(
        arrived_member(0, 2),
        arrived_member(1, declared=sample_declaration(1, 2, place="file:///other")),
    )
    assert len(find_roll_calls(view)) == 1


def test_who_is_here_with_another_world_size_was_heard_of() -> None:
    view = gathering_job(
        arrived_member(0, 2),
        arrived_member(1, declared=sample_declaration(1, 3)),
        launched=1,
        joined=True,
    )
    (roll,) = find_roll_calls(view)
    assert roll.is_tied and roll.size == 3 and roll.unheard_ranks == (2,)


def test_who_fell_before_its_launcher_started_all_again_is_not_here() -> None:
    above = coming_member(9, worker=0, launcher=True)
    fell = [
        ended_member(
            r, code=1, ended_at=20.0, member={"worker": 0, "declared": sample_declaration(r, 2)}
        )
        for r in (0, 1)
    ]
    new = {"worker": 0, "started_at": 22.0}
    (roll,) = find_roll_calls(gathering_job(above, *fell, arrived_member(0, 2, **new), launched=1))
    assert not roll.duplicates and roll.missing == (1,)
    (roll,) = find_roll_calls(
        gathering_job(
            above, *fell, arrived_member(0, 2, **new), arrived_member(1, 2, **new), launched=1
        )
    )
    assert roll.is_complete


def test_who_is_brought_back_alone_still_has_the_others_here() -> None:
    done = ended_member(0, code=0, ended_at=20.0, member={"declared": sample_declaration(0, 2)})
    (roll,) = find_roll_calls(
        gathering_job(done, arrived_member(1, 2, started_at=22.0), launched=2, rolled_at=5.0)
    )
    assert roll.is_complete


def _of_torchrun(rank: int, **changes: object) -> Member:
    """A rank that torchrun started, which has not come to init: its RANK is known from its environment."""
    early = {"phase": Phase.LAUNCHED, "declared": None, "round": 0, "step": 0, "candidate": True}
    return sample_member(rank, **{**early, "worker": 0, **changes})


def test_a_rank_of_a_launcher_that_is_still_in_its_own_code_is_late() -> None:
    launcher = coming_member(9, worker=0, launcher=True)
    view = gathering_job(
        launcher, arrived_member(0, 2, worker=0), _of_torchrun(1), launched=0, now=130.0
    )
    (roll,) = find_roll_calls(view)
    assert [m.who.rank for m in roll.late] == [1]
    assert roll.missing == (1,) and roll.unheard_ranks == ()


def test_a_rank_of_a_launcher_that_died_before_init_is_gone() -> None:
    early = {"worker": 0, "candidate": True, "declared": None, "round": 0, "phase": Phase.LAUNCHED}
    dead = ended_member(1, code=1, ended_at=62.0, member=early)
    (roll,) = find_roll_calls(
        gathering_job(arrived_member(0, 2, worker=0), dead, launched=0, now=70.0)
    )
    assert [m.who.rank for m in roll.ended] == [1] and roll.unheard_ranks == ()


def test_a_program_that_ran_before_the_ranks_is_none_of_them() -> None:
    early = {"worker": 0, "candidate": True, "declared": None, "round": 0, "phase": Phase.LAUNCHED}
    prepared = ended_member(
        7, code=0, ended_at=40.0, member={**early, "who": Who(index=0, rank=-1, pid=7)}
    )
    ranks = [arrived_member(r, 2, worker=0, started_at=41.0) for r in (0, 1)]
    (roll,) = find_roll_calls(gathering_job(prepared, *ranks, launched=0))
    assert roll.is_complete and roll.ended == ()


def test_a_world_that_a_rank_makes_beside_its_training_is_its_own() -> None:
    """torch's `async_save` in a process: each rank starts one, and these make a group."""
    trains = [
        sample_member(r, worker=r, declared=sample_declaration(r, 2), started_at=1.0)
        for r in (0, 1)
    ]
    beside = [
        arrived_member(r, who=Who(index=r, rank=r, host="a", pid=900 + r), worker=r, started_at=55.0,
             declared=sample_declaration(r, 2, place="tcp://127.0.0.1:31000"))
        for r in (0, 1)
    ]  # fmt: skip
    view = gathering_job(*trains, *beside, launched=2, rolled_at=5.0)
    rolls = find_roll_calls(view)
    assert [len(r.present) for r in rolls] == [2, 2]
    assert all(r.is_complete for r in rolls)
    engine = msgspec.structs.replace(beside[0], declared=sample_declaration(0, 1, place="store"))
    alone = find_roll_calls(gathering_job(*trains, engine, launched=2, rolled_at=5.0))
    assert [(r.size, r.is_complete) for r in alone] == [(2, True), (1, True)]


def test_of_two_jobs_side_by_side_the_first_that_come_are_not_one() -> None:
    other = "tcp://127.0.0.1:30000"
    come = (
        arrived_member(1, 2, worker=0),
        arrived_member(2, worker=0, declared=sample_declaration(0, 2, place=other)),
    )
    on_their_way = (coming_member(3, worker=0), coming_member(4, worker=0))
    assert len(find_roll_calls(gathering_job(*come, *on_their_way, launched=0, now=62.0))) == 2
    (one,) = find_roll_calls(gathering_job(*come, launched=0, now=62.0))
    assert len(one.present) == 2
