"""In a job that stands still: who waits, and who is elsewhere."""

from __future__ import annotations

import pytest

from allaboard.analysis.stalls.stall import (
    MIN_STILL_SAMPLES,
    find_stall,
    is_still,
    member_waits_for_peers,
    waiting_evidence,
)
from allaboard.facts import Frame, GroupState, Member, Op, Phase
from allaboard.facts.samples import (
    REDUCE,
    USER,
    ended_member,
    sample_job,
    sample_member,
    sample_stack,
    stalled_job,
    waiting_member,
)

STEP = Frame("/v/lib/python3.11/site-packages/torch/autograd/graph.py", 824, "_engine_run_backward")


def test_who_waits_and_who_is_elsewhere() -> None:
    found = find_stall(
        stalled_job(
            waiting_member(0), sample_member(1, stack=sample_stack(USER)), waiting_member(2)
        )
    )
    assert found is not None
    assert [m.who.rank for m in found.waiting] == [0, 2]
    assert [m.who.rank for m in found.absent] == [1]


@pytest.mark.parametrize(
    "view",
    [
        sample_job(waiting_member(0), sample_member(1, stack=sample_stack(USER))),
        stalled_job(sample_member(0), sample_member(1)),
        stalled_job(waiting_member(0, phase=Phase.JOINING)),
        stalled_job(ended_member(0, code=0)),
        stalled_job(),
    ],
    ids=["moves", "nobody looked", "has not joined", "ended", "nobody"],
)
def test_there_is_no_stall(view: object) -> None:
    assert find_stall(view) is None  # type: ignore[arg-type]


def test_launchers_and_the_dead_are_left_out() -> None:
    found = find_stall(
        stalled_job(waiting_member(0), waiting_member(1, launcher=True), ended_member(2, code=0))
    )
    assert found is not None
    assert len(found.waiting) == 1 and found.absent == ()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (waiting_member(0), True),
        (waiting_member(0, stack=None), True),
        (waiting_member(0, os_state="T"), False),
        (sample_member(0, stack=sample_stack(REDUCE, USER)), True),
        (sample_member(0, stack=sample_stack(STEP, USER)), True),
        (sample_member(0, stack=sample_stack(STEP, USER), cpu=0.9), False),
        (sample_member(0, stack=sample_stack(USER)), False),
        (sample_member(0), False),
        (sample_member(0, op=Op("tf.function train", 3, 90.0)), True),
        (sample_member(0, op=Op("tf.function train", 3, 90.0), cpu=0.9), False),
        (sample_member(0, op=Op("tf.function train", 3, 90.0), stack=sample_stack(USER)), False),
        (
            sample_member(
                0, op=Op("tf.function train", 3, 90.0, beside=True), stack=sample_stack(USER)
            ),
            True,
        ),
        (sample_member(0, op=Op("tf.function train", 3, 90.0, beside=True), cpu=0.9), False),
    ],
)
def test_who_waits_for_its_peers(one: Member, expected: bool) -> None:
    assert member_waits_for_peers(one) is expected


READS = Frame(
    "/home/u/train.py", 52, "train", "value = float(np.asarray(loss.addressable_data(0)))"
)
TREE = Frame("/v/lib/python3.11/site-packages/jax/_src/tree_util.py", 361, "<genexpr>")
KEEPS = Frame("/v/lib/python3.11/site-packages/numpy/lib/_npyio_impl.py", 572, "save",
              "arr = np.asanyarray(arr)")  # fmt: skip
WRITES = Frame("/v/lib/python3.11/site-packages/numpy/lib/_format_impl.py", 795, "write_array",
               "array.tofile(fp)")  # fmt: skip
QUEUED = Frame("/home/u/train.py", 52, "train", "value = np.asarray(connection.recv(64))")
BAD = Frame("/home/u/train.py", 52, "train", "np.asarray(loss); time.sleep(3600)")


@pytest.mark.parametrize(
    ("frames", "changes", "expected"),
    [
        ((READS,), {}, True),
        ((TREE, USER), {}, True),
        ((KEEPS, USER), {}, True),
        ((READS,), {"cpu": 0.9}, False),
        ((READS,), {"framework": "torch"}, False),
        ((WRITES, USER), {}, False),
        ((QUEUED,), {}, False),
        ((BAD,), {}, False),
        ((USER,), {}, False),
    ],
    ids=[
        "asarray",
        "tree.map",
        "np.save",
        "computes",
        "torch",
        "writes",
        "a pipe",
        "sleeps",
        "its own",
    ],
)
def test_who_reads_a_value_through_numpy_waits_for_who_computes_it(
    frames: tuple[Frame, ...], changes: dict[str, object], expected: bool
) -> None:
    one = sample_member(0, **{"framework": "jax", "stack": sample_stack(*frames), **changes})
    assert member_waits_for_peers(one) is expected


def test_the_sentence_of_who_reads_a_value() -> None:
    found = find_stall(
        stalled_job(
            sample_member(0, framework="jax", stack=sample_stack(READS)),
            sample_member(1, stack=sample_stack(USER)),
        )
    )
    assert found is not None and [m.who.rank for m in found.absent] == [1]
    assert waiting_evidence(found).observed == (
        "rank 0 waits in a read of a JAX value at train.py:52 in train"
    )


def test_still_needs_looks_at_one_place_and_no_io() -> None:
    assert is_still(sample_member(0, stack=sample_stack(USER, samples=MIN_STILL_SAMPLES)))
    assert not is_still(sample_member(0, stack=sample_stack(USER, samples=MIN_STILL_SAMPLES - 1)))
    assert not is_still(sample_member(0, stack=sample_stack(USER, moving=True)))
    assert not is_still(sample_member(0, stack=sample_stack(USER), io=1e6))
    assert not is_still(sample_member(0))


def test_the_sentence_that_hangs_carry() -> None:
    one = find_stall(stalled_job(waiting_member(0), sample_member(1, stack=sample_stack(USER))))
    two = find_stall(
        stalled_job(
            sample_member(0, stack=sample_stack(STEP, USER)),
            sample_member(2, stack=sample_stack(STEP, USER)),
        )
    )
    assert one is not None and two is not None
    assert waiting_evidence(one).observed == "rank 0 waits in all_reduce at train.py:41 in train"
    assert (
        waiting_evidence(two).observed
        == "ranks 0 and 2 wait in a training step (gradients) at train.py:41 in train"
    )


def _counted(rank: int, name: str, made: int, *ranks: int) -> dict[str, object]:
    state = GroupState(name, 1, made, 90.0, len(ranks), ranks)
    return {"groups": (state,), "worker": rank}


def test_who_is_in_no_group_that_somebody_waits_in_is_not_waited_for() -> None:
    inside = waiting_member(0, op=Op("all_reduce", 41, 90.0, "1", 21), **_counted(0, "1", 21, 0, 1))
    asleep = sample_member(1, stack=sample_stack(USER), **_counted(1, "1", 20, 0, 1))
    serving = [
        sample_member(r, stack=sample_stack(USER), **_counted(r, "2", 7, 2, 3)) for r in (2, 3)
    ]
    found = find_stall(stalled_job(inside, asleep, *serving, launched=4))
    assert found is not None and [m.who.rank for m in found.absent] == [1]


def test_who_has_made_the_call_already_is_not_waited_for() -> None:
    inside = waiting_member(
        0, op=Op("all_reduce", 41, 90.0, "0", 41), **_counted(0, "0", 41, 0, 1, 2)
    )
    behind, ahead = (
        sample_member(r, stack=sample_stack(USER), **_counted(r, "0", made, 0, 1, 2))
        for r, made in ((1, 40), (2, 41))
    )
    found = find_stall(stalled_job(inside, behind, ahead))
    assert found is not None and [m.who.rank for m in found.absent] == [1]
    # Where nobody is behind, what was counted explains nothing.
    found = find_stall(stalled_job(inside, ahead))
    assert found is not None and [m.who.rank for m in found.absent] == [2]
