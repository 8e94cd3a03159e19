"""What a step of TensorFlow returns is looked at where it is one number, once that was finite for a while."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from allaboard.probe.adapters._tensorflow.losses import MAX_FUNCTIONS, MIN_FINITE, Returned
from allaboard.probe.layout import LOSS, LOSS_AT

NAN = float("nan")


class EagerTensor:
    """As much of TensorFlow's own as is asked."""

    def __init__(self, value: float, shape: tuple[int, ...] = (), device: str = "CPU:0") -> None:
        self._value, self._shape = value, shape
        self.dtype = SimpleNamespace(is_floating=isinstance(value, float))
        self.backing_device = f"/job:worker/replica:0/task:0/device:{device}"

    def _shape_tuple(self) -> tuple[int, ...]:
        return self._shape

    def numpy(self) -> float:
        assert "CPU" in self.backing_device, "a device is not to be waited for"
        return self._value


def _returned(is_async: bool = False) -> Returned:
    context = SimpleNamespace(is_async=lambda: is_async)
    return Returned(SimpleNamespace(context=lambda: context))


def _bad(results: list[Any], returned: Returned, name: str = "train_step") -> int:
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))
    for box.steps, result in enumerate(results):
        returned.add_result(box, name, result)
    bad: int = LOSS.unpack_from(box.map, LOSS_AT)[1]
    return bad


FINE = [EagerTensor(0.5)] * MIN_FINITE


def test_the_last_finite_loss_of_the_first_function_is_noted() -> None:
    returned = _returned()
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size), loss=NAN)
    for value in (0.5, 0.5, 0.5, 0.25, NAN):
        returned.add_result(box, "train_step", EagerTensor(value))
        returned.add_result(box, "gradient_norm", EagerTensor(3.0))
    assert box.loss == 0.25


@pytest.mark.parametrize(
    "bad",
    [
        EagerTensor(NAN),
        (EagerTensor(NAN), EagerTensor(0.5)),
        {"loss": EagerTensor(NAN), "mae": EagerTensor(0.1)},
    ],
)
def test_a_number_that_is_finite_no_more_is_told(bad: Any) -> None:
    assert _bad([*FINE, bad, bad], _returned()) == 2


@pytest.mark.parametrize(
    "result",
    [
        EagerTensor(NAN, shape=(2,)),
        EagerTensor(3),
        EagerTensor(NAN, device="GPU:0"),
        {"mae": EagerTensor(NAN)},
        (),
        None,
        "nan",
    ],
)
def test_what_is_no_number_at_hand_is_let_be(result: Any) -> None:
    assert _bad([*FINE, result, result], _returned()) == 0


def test_a_function_that_never_returned_a_finite_one_is_let_be() -> None:
    assert _bad([EagerTensor(NAN)] * 9, _returned()) == 0


def test_nothing_is_waited_for() -> None:
    assert _bad([*FINE, EagerTensor(NAN)], _returned(is_async=True)) == 0


def test_one_function_is_not_taken_for_another() -> None:
    returned = _returned()
    assert _bad([*FINE], returned, "eval_step") == 0
    assert _bad([*FINE, EagerTensor(NAN)], returned) == 1
    for number in range(2 * MAX_FUNCTIONS):
        assert _bad([*FINE], returned, f"made_{number}") == 0
