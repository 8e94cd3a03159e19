"""What a step of JAX returns is looked at where it is one number on a CPU, and only once it is there."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from allaboard.probe import member
from allaboard.probe.adapters._jax.losses import MAX_STEPS_AHEAD, MIN_FINITE, Returned
from allaboard.probe.layout import LOSS, LOSS_AT

NAN = float("nan")
STEP = object()


class ArrayImpl:
    """As much of JAX's own as is asked. ``there``: it has been computed; ``gone``: it was donated."""

    def __init__(
        self,
        value: float,
        shape: tuple[int, ...] = (),
        device: str = "cpu",
        there: bool = True,
        gone: bool = False,
        kind: str = "f",
    ) -> None:
        self.shape, self.there, self.gone = shape, there, gone
        self.dtype = SimpleNamespace(kind=kind)
        self._share = _share(value if kind == "f" else 3, shape, device)

    @property
    def _arrays(self) -> list[Any]:
        return [self._share] if not self._gone() else []

    def _gone(self) -> bool:
        if self.gone:
            raise RuntimeError("Array has been deleted with shape=float32[].")
        return False

    def is_ready(self) -> bool:
        return self.there and not self._gone()


def _share(value: float, shape: tuple[int, ...], device: str) -> Any:
    """One device's share of an array: a buffer where that is a CPU."""
    if device != "cpu":
        return SimpleNamespace(platform=lambda: device)
    number = ctypes.c_double if isinstance(value, float) else ctypes.c_int64
    kind: Any = number * shape[0] if shape else number
    made = type("Share", (kind,), {"platform": lambda self: device})
    return made(*[value] * shape[0]) if shape else made(value)


@pytest.fixture(autouse=True)
def _formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """ctypes says "<d" where JAX says "=d"."""
    monkeypatch.setattr("allaboard.probe.adapters._jax.losses.FORMATS", ("<d",))


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other tests in this process say nothing here."""
    monkeypatch.setattr(member.here, "notes", {})


def _bad(results: list[Any], returned: Returned | None = None) -> tuple[int, int]:
    """How many in a row were not finite, and the step where that began; the first result is of step 1."""
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))
    returned = returned or Returned()
    for number, result in enumerate([*results, ()], 1):
        returned.add_result(box, STEP, number, result)
    _, bad, first, *_ = LOSS.unpack_from(box.map, LOSS_AT)
    assert "losses" not in member.here.notes
    return bad, first


def fine(many: int = MIN_FINITE + 1) -> list[Any]:
    """As many results as it takes, the first of which shows where the number is."""
    return [ArrayImpl(0.5) for _ in range(many)]


@pytest.mark.parametrize(
    "form",
    [
        lambda loss: loss,
        lambda loss: (loss, ArrayImpl(1.0, shape=(4,))),
        lambda loss: ({"w": ArrayImpl(1.0)}, loss),
        lambda loss: ({"w": ArrayImpl(1.0)}, {"accuracy": ArrayImpl(0.1), "loss": loss}),
        lambda loss: ((loss, ArrayImpl(1.0)), {"w": ArrayImpl(1.0)}),
        lambda loss: {"accuracy": ArrayImpl(0.1), "loss": loss},
        lambda loss: [ArrayImpl(3, kind="i"), loss],
    ],
)
def test_a_number_that_is_finite_no_more_is_told(form: Any) -> None:
    assert _bad([form(ArrayImpl(v)) for v in (*[0.5] * 4, NAN, NAN)]) == (2, 5)


@pytest.mark.parametrize(
    "result",
    [
        ArrayImpl(NAN, shape=(2,)),
        ArrayImpl(NAN, kind="i"),
        ArrayImpl(NAN, device="gpu"),
        {"accuracy": ArrayImpl(NAN)},
        (),
        None,
        "nan",
    ],
)
def test_what_is_no_number_at_hand_is_let_be(result: Any) -> None:
    assert _bad([*fine(), result, result]) == (0, 0)
    assert _bad([result] * 9) == (0, 0)


def test_what_never_was_finite_is_let_be() -> None:
    assert _bad([ArrayImpl(NAN)] * 9) == (0, 0)


def test_one_that_is_not_there_yet_is_looked_at_later_as_that_of_its_step() -> None:
    late = [ArrayImpl(NAN, there=False) for _ in range(3)]
    returned = Returned()
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))
    for number, result in enumerate([*fine(), *late, *fine(2)], 1):
        returned.add_result(box, STEP, number, result)
    assert LOSS.unpack_from(box.map, LOSS_AT)[1] == 0
    for one in late:
        one.there = True
    returned.add_result(box, STEP, 10, ArrayImpl(NAN, there=False))
    assert LOSS.unpack_from(box.map, LOSS_AT)[1:3] == (0, 5)  # three were bad, then one was fine


def test_of_one_that_was_not_seen_nothing_is_concluded() -> None:
    """It may have been the first: a later one would be told as that, of another rank."""
    assert _bad([*fine(), ArrayImpl(0.5, gone=True), ArrayImpl(NAN)]) == (0, 0)
    many = [ArrayImpl(0.5, there=False) for _ in range(MAX_STEPS_AHEAD + 1)]
    assert _bad([*fine(), *many, *[ArrayImpl(NAN)] * 3]) == (0, 0)
    assert _bad([*fine(), ArrayImpl(0.5, gone=True), *fine(), ArrayImpl(NAN)]) == (1, 10)


def test_the_last_finite_loss_is_noted() -> None:
    returned = Returned()
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size), loss=NAN)
    noted = []
    for number, value in enumerate((2.0, 1.0, NAN, 0.25, 0.125), 1):
        returned.add_result(box, STEP, number, ArrayImpl(value))
        noted.append(box.loss)
    assert noted[2:] == [1.0, 1.0, 0.25]  # it is read once the next one is there


def test_another_function_is_judged_by_itself() -> None:
    returned = Returned()
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))
    for number in range(9):
        returned.add_result(box, STEP, number, ArrayImpl(0.5))
    for number in range(9, 20):
        returned.add_result(box, _bad, number, ArrayImpl(NAN))
    assert LOSS.unpack_from(box.map, LOSS_AT)[1] == 0


def test_another_jax_than_was_tried_costs_the_job_nothing() -> None:
    class Other(ArrayImpl):
        is_ready = None  # type: ignore[assignment]

    Other.__name__ = "ArrayImpl"
    returned = Returned()
    box: Any = SimpleNamespace(steps=0, map=bytearray(LOSS_AT + LOSS.size))
    try:
        for number in range(5):
            returned.add_result(box, STEP, number, Other(0.5))
        assert "NoneType" in str(member.here.notes["losses"])
    finally:
        member.here.notes.pop("losses", None)
