"""Which of a program's jitted functions is its training step."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allaboard.probe import member
from allaboard.probe.adapters._jax.steps import BY, PLACE, Steps
from allaboard.probe.blackbox import Box


class ArrayImpl:
    sharding = None


def train_step() -> None: ...


def eval_step() -> None: ...


def prepare() -> None: ...


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    member.here.box = made = Box(str(tmp_path / "1.box"))
    yield made
    member.here.box = None
    for name in (PLACE, BY):
        member.here.notes.pop(name, None)


def flat(tree: Any) -> list[Any]:
    """As jax.tree_util.tree_leaves does with tuples and dicts."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, tuple) else [tree]


def train(steps: Steps, many: int, state: tuple[ArrayImpl, ...]) -> tuple[ArrayImpl, ...]:
    for _ in range(many):
        new = tuple(ArrayImpl() for _ in state)
        steps(train_step, (state, ArrayImpl()), {}, (new, ArrayImpl()))
        state = new
    return state


def test_it_is_given_what_it_gave(box: Box) -> None:
    steps = Steps(flat)
    for _ in range(2):
        steps(prepare, (ArrayImpl(),), {}, ArrayImpl())
    state = train(steps, 10, (ArrayImpl(), ArrayImpl(), ArrayImpl()))
    assert box.steps == 8  # what it is given is first seen in the second, which shows it
    total = ArrayImpl()
    for _ in range(20):
        new = ArrayImpl()
        steps(eval_step, (state, ArrayImpl(), total), {}, new)
        total = new
    assert box.steps == 8
    train(steps, 5, state)
    assert box.steps == 13
    assert str(member.here.notes[PLACE]).startswith(__file__[-100:])


def test_of_functions_that_carry_nothing_the_one_that_is_called(box: Box) -> None:
    steps = Steps(flat)
    for _ in range(10):
        steps(prepare, (ArrayImpl(),), {}, ArrayImpl())
    assert box.steps == 7


def test_what_is_jaxs_own_is_none(box: Box) -> None:
    def add() -> None: ...

    add.__module__ = "jax._src.numpy.ufuncs"
    steps = Steps(flat)
    for _ in range(10):
        steps(add, (ArrayImpl(),), {}, ArrayImpl())
    assert box.steps == 0 and box.slot() is not None and box.slot().count == 0  # type: ignore[union-attr]


def test_what_a_library_jits_for_the_program_is_its_step_too(box: Box) -> None:
    def pmapped() -> None: ...

    pmapped.__module__ = "jax._src.pmap"
    library = "/v/lib/python3.11/site-packages/jax/_src/pmap.py"
    scope: dict[str, Any] = {}
    exec(compile("\n\ndef wrapped(jitted, *given): jitted(*given)", library, "exec"), scope)
    steps = Steps(flat)
    for _ in range(10):
        scope["wrapped"](steps, pmapped, (ArrayImpl(),), {}, ArrayImpl())
    assert box.steps == 7
    assert str(member.here.notes[PLACE]).startswith(__file__[-100:])
    assert member.here.notes[BY] == library + ":3"


def test_steps_that_a_library_tells_of_are_shown_at_the_programs_line(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member.here, "steps_told", True)
    library = "/v/lib/python3.11/site-packages/keras/src/backend/jax/trainer.py"
    hook = "/src/allaboard/probe/adapters/_keras.py"
    scope: dict[str, Any] = {}
    exec(compile("def jits(step, *given): step(*given)", library, "exec"), scope)
    exec(compile("def inside(step, *given): jits(step, *given)", hook, "exec"), scope)
    steps = Steps(flat)
    for _ in range(10):
        scope["inside"](steps, train_step, (ArrayImpl(),), {}, ArrayImpl())
    assert box.steps == 0  # they are counted there
    assert str(member.here.notes[PLACE]).startswith(__file__[-100:])
    assert member.here.notes[BY] == library + ":1"


def test_arrays_that_cannot_be_followed_do_no_harm(box: Box) -> None:
    class Odd:
        __slots__ = ("sharding",)

        def __init__(self) -> None:
            self.sharding = 1

    steps = Steps(flat)
    for _ in range(6):
        steps(prepare, (1,), {}, Odd())
    train(steps, 4, (ArrayImpl(),))


def test_a_function_is_not_kept_alive(box: Box) -> None:
    steps = Steps(flat)

    def once() -> None: ...

    gone = weakref.ref(once)
    steps(once, (ArrayImpl(),), {}, ArrayImpl())
    assert len(steps._known) == 1
    del once
    gc.collect()
    assert gone() is None and steps._known == {}


def test_what_has_no_weak_references_is_passed_over(box: Box) -> None:
    steps = Steps(flat)
    for _ in range(3):
        steps((1, 2), (ArrayImpl(),), {}, ArrayImpl())
    assert steps._known == {} and box.steps == 0
