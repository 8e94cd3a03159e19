"""Steps whose loss is not finite are counted, however many backwards a step has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from allaboard.probe.adapters._loss_values import BACKWARDS_PER_STEP, Losses
from allaboard.probe.layout import LOSS, LOSS_AT

NAN = float("nan")


def _box() -> Any:
    """What of a box is used here: its count of steps, and its bytes."""
    return SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))


def _written(box: Any) -> tuple[int, int]:
    """In how many steps, and the first."""
    _, bad, first, _, _ = LOSS.unpack_from(box.map, LOSS_AT)
    return bad, first


def test_several_backwards_of_one_step_count_once() -> None:
    box, losses = _box(), Losses()
    for _ in range(5):
        losses.record_value(box, NAN)
    assert _written(box) == (1, 1)


def test_each_step_counts() -> None:
    box, losses = _box(), Losses()
    for box.steps in range(4):
        losses.record_value(box, NAN)
        losses.record_value(box, NAN)
    assert _written(box) == (4, 1)


def test_steps_that_are_left_out_count_in_the_end() -> None:
    box, losses = _box(), Losses()
    for _ in range(1 + 2 * BACKWARDS_PER_STEP):
        losses.record_value(box, NAN)
    assert _written(box) == (3, 1)


def test_one_good_value_ends_the_row() -> None:
    box, losses = _box(), Losses()
    losses.record_value(box, NAN)
    losses.record_value(box, 0.5)
    assert _written(box)[0] == 0
    losses.record_value(box, NAN)
    assert _written(box)[0] == 1
