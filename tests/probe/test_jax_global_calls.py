"""Calls of jitted functions over devices of several processes are counted, in order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allaboard.blackbox.collective_calls import CallReader
from allaboard.facts.collective_calls import JITTED_GROUP
from allaboard.probe import member
from allaboard.probe.adapters._jax.global_calls import GROUP_NAME
from allaboard.probe.adapters._jax.steps import Steps
from allaboard.probe.blackbox import Box


class ArrayImpl:
    def __init__(self, *processes: int) -> None:
        self.is_fully_addressable = len(processes) < 2
        devices = [SimpleNamespace(process_index=p) for p in processes]
        self.sharding = SimpleNamespace(device_set=devices)


def train_step() -> None: ...


def plot() -> None: ...


def mixed() -> None: ...


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    state = SimpleNamespace(process_id=1, num_processes=4)
    monkeypatch.setitem(
        sys.modules,
        "jax._src.distributed",
        SimpleNamespace(global_state=state),  # type: ignore[arg-type]
    )
    member.here.box = made = Box(str(tmp_path / "1.box"))
    yield made
    member.here.box = None


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def calls_in(box: Box, name: str) -> list[str]:
    trace = CallReader(box.map).trace_group(name, 0)
    return [call.op if call else "?" for _, call in trace.calls] if trace else []


def test_the_name_is_the_one_that_analysis_knows() -> None:
    assert GROUP_NAME == JITTED_GROUP


def test_only_calls_over_several_processes_count(box: Box) -> None:
    steps = Steps(leaves)
    for _ in range(2):
        steps(train_step, (ArrayImpl(1),), {}, ArrayImpl(0, 1, 2, 3))
        steps(plot, (ArrayImpl(1),), {}, ArrayImpl(1))
    assert calls_in(box, JITTED_GROUP) == ["jit train_step"] * 2
    state = CallReader(box.map).group_states()[0]
    assert (state.size, state.ranks) == (4, (0, 1, 2, 3))
    assert state.last_call is not None and state.last_call.site is not None
    assert state.last_call.site.file.endswith("test_jax_global_calls.py")


def test_some_of_the_processes_are_a_group_of_their_own(box: Box) -> None:
    Steps(leaves)(train_step, (), {}, ArrayImpl(0, 1))
    assert calls_in(box, f"{JITTED_GROUP} 0-1") == ["jit train_step"]
    assert calls_in(box, JITTED_GROUP) == []


def test_a_function_that_did_both_is_not_counted_any_more(box: Box) -> None:
    steps = Steps(leaves)
    for result in (ArrayImpl(0, 1, 2, 3), ArrayImpl(1), ArrayImpl(0, 1, 2, 3)):
        steps(mixed, (), {}, result)
    assert len(calls_in(box, JITTED_GROUP)) == 1


def test_a_call_that_compiles_is_counted_before_it_is_made(box: Box) -> None:
    steps = Steps(leaves)
    given, result = ArrayImpl(0, 1, 2, 3), ArrayImpl(0, 1, 2, 3)
    steps.label(train_step)
    steps.begin(train_step, (given,))
    assert calls_in(box, JITTED_GROUP) == ["jit train_step"]
    steps(train_step, (given,), {}, result)
    assert len(calls_in(box, JITTED_GROUP)) == 1
    steps(train_step, (given,), {}, result)
    assert len(calls_in(box, JITTED_GROUP)) == 2
