"""When a training goes back, and by how many steps."""

from __future__ import annotations

from allaboard.coordinator.trackers.training_rollbacks import TrainingRollbacks
from allaboard.facts import Numbered, Setback, Who

PS = Who(job="ps", index=0, pid=103)
CHIEF = Who(job="worker", index=0, pid=101)


def lost(found: Setback | None) -> tuple[int, int] | None:
    return None if found is None else (found.high, found.low)


def test_who_reads_less_than_before_tells_it_and_the_others_do_not_again() -> None:
    kept = TrainingRollbacks()
    for pid, last in ((101, 460), (102, 463), (101, 465)):
        assert kept.add_step_reading(1.0, pid, Numbered(1, last)) is None
    kept.note_failure(PS, "was killed by SIGKILL")
    assert lost(kept.add_step_reading(20.0, 101, Numbered(1, 420, 1, 465, 401))) == (465, 401)
    assert kept.add_step_reading(21.0, 102, Numbered(1, 430, 1, 463, 425)) is None
    assert [(s.who, s.how, s.lost) for s in kept.rollbacks] == [
        ((PS,), "ps 0 was killed by SIGKILL", 64)
    ]


def test_whose_first_run_after_it_was_an_earlier_one_corrects_it() -> None:
    kept = TrainingRollbacks()
    kept.add_step_reading(1.0, 101, Numbered(1, 347))
    kept.add_step_reading(1.0, 102, Numbered(1, 340))
    kept.note_failure(PS, "was killed by SIGKILL")
    assert lost(kept.add_step_reading(20.0, 101, Numbered(1, 330, 1, 347, 326))) == (347, 326)
    assert lost(kept.add_step_reading(20.0, 102, Numbered(1, 331, 1, 340, 302))) == (347, 302)
    assert [(s.who, s.low) for s in kept.rollbacks] == [((PS,), 302)]


def test_who_did_not_see_the_last_steps_itself_tells_the_others_too() -> None:
    kept = TrainingRollbacks()
    kept.add_step_reading(1.0, 101, Numbered(1, 460))
    kept.add_step_reading(1.0, 102, Numbered(1, 500))
    assert lost(kept.add_step_reading(20.0, 101, Numbered(1, 420, 1, 460, 401))) == (500, 401)
    assert (
        kept.add_step_reading(20.5, 102, Numbered(1, 500)) is None
    )  # it waits yet, and read nothing new
    assert kept.add_step_reading(21.0, 101, Numbered(1, 440, 1, 460, 401)) is None
    assert lost(kept.add_step_reading(30.0, 101, Numbered(1, 402, 2, 441, 401))) == (441, 401)


def test_a_process_that_was_started_again_shows_it_by_its_first_step() -> None:
    kept = TrainingRollbacks()
    kept.add_step_reading(1.0, 101, Numbered(1, 460))
    kept.note_failure(CHIEF, "was killed by SIGKILL")
    kept.note_process_start(201)
    assert lost(kept.add_step_reading(20.0, 201, Numbered(401, 404))) == (460, 401)


def test_a_worker_that_comes_back_to_a_training_that_went_on_loses_nothing() -> None:
    kept = TrainingRollbacks()
    kept.add_step_reading(1.0, 101, Numbered(1, 460))
    kept.note_process_start(202)
    kept.add_step_reading(15.0, 101, Numbered(1, 900))
    assert kept.add_step_reading(20.0, 202, Numbered(880, 890)) is None
    assert kept.rollbacks == []


def test_a_worker_that_was_started_before_a_setback_does_not_tell_it_again() -> None:
    kept = TrainingRollbacks()
    kept.add_step_reading(1.0, 101, Numbered(1, 460))
    kept.note_process_start(202)
    assert lost(kept.add_step_reading(20.0, 101, Numbered(1, 402, 1, 460, 401))) == (460, 401)
    assert kept.add_step_reading(21.0, 202, Numbered(403, 405)) is None


def test_who_ended_before_anything_was_heard_of_the_steps_is_told_if_they_had_begun() -> None:
    for began, who in ((9.0, (PS,)), (12.0, ())):
        kept = TrainingRollbacks()
        kept.note_failure(PS, "was killed by SIGKILL", 10.0)
        assert kept.add_step_reading(11.0, 101, Numbered(0, 48), began) is None
        assert lost(kept.add_step_reading(20.0, 101, Numbered(0, 49, 1, 48, 0), began)) == (48, 0)
        assert [s.who for s in kept.rollbacks] == [who]
