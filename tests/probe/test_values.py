"""What the probe sees of losses and parameters, with tensors that have only what it asks for."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import pytest

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Check, Loss
from allaboard.probe.adapters._loss_values import Losses
from allaboard.probe.adapters._torch import parameter_hash
from allaboard.probe.adapters._torch.parameter_hash import VARIABLE, Replicas, Values
from allaboard.probe.blackbox import Box


class Tensor:
    """A one-dimensional tensor on the CPU."""

    is_cpu = True

    def __init__(self, *values: float) -> None:
        self.values = values

    def numel(self) -> int:
        return len(self.values)

    def item(self) -> float:
        return self.values[0]

    def detach(self) -> Tensor:
        return self

    def reshape(self, size: int) -> Tensor:
        return self

    def __getitem__(self, part: slice) -> Tensor:
        return Tensor(*self.values[part])

    def tolist(self) -> list[float]:
        return list(self.values)


class Shard(Tensor):
    """Of a class of its own."""


def box_of(folder: Path) -> tuple[Box, OpenBox]:
    path = folder / f"{os.getpid()}.box"
    box = Box(str(path))
    return box, OpenBox(path)


def test_the_last_finite_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    box, reader = box_of(tmp_path)
    losses = Losses()
    box.step()
    assert reader.read_snapshot().last_loss is None  # no loss was seen in it
    told = []
    for value in (2.5, -0.5, float("nan"), 1e300, 1j, 0.0):
        losses.look(box, Tensor(value))  # type: ignore[arg-type]
        box.step()
        told.append(reader.read_snapshot().last_loss)
    assert told == [2.5, -0.5, -0.5, None, None, 0.0]


def test_losses_that_are_not_finite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    box, reader = box_of(tmp_path)
    losses = Losses()
    told = []
    for value in (1.0, float("nan"), float("inf"), 2.0, float("-inf")):
        losses.look(box, Tensor(value))
        box.step()
        told.append(reader.read_snapshot().loss)
    assert told == [
        None, Loss(1, 2, "nan"), Loss(2, 2, "nan"), Loss(0, 2, "nan"), Loss(1, 5, "-inf"),
    ]  # fmt: skip
    for other in (Shard(float("nan")), Tensor(float("nan"), 1.0)):
        losses.look(box, other)
    assert reader.read_snapshot().loss == Loss(1, 5, "-inf")


def test_parameters_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    known = Replicas()
    monkeypatch.setattr(parameter_hash, "replicas", known)
    box, reader = box_of(tmp_path)
    values = Values()
    one, two = Tensor(*range(100)), Tensor(1.0)
    known.add([Tensor(2.0)])  # of another model
    known.add([one, two])
    groups = [{"params": [one, Shard(1.0)]}, {"params": [two]}]
    optimizer = types.SimpleNamespace(param_groups=groups)
    for _ in range(200):
        box.step()
        values.stepped(box, optimizer)
    checks = reader.read_snapshot().checks
    assert [c.step for c in checks[-3:]] == [196, 198, 200] and len(checks) == 64
    assert {c.parameter for c in checks} == {1, 2}
    assert len({c.digest for c in checks}) == 2
    assert isinstance(checks[0], Check)


def test_what_is_not_kept_equal_by_ddp_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    box, reader = box_of(tmp_path)
    optimizer = types.SimpleNamespace(param_groups=[{"params": [Tensor(1.0), Shard(1.0)]}])
    values = Values()
    for _ in range(4):
        box.step()
        values.stepped(box, optimizer)
    assert reader.read_snapshot().checks == ()


def test_another_object_with_the_address_of_one_that_is_gone_is_not_equal_by_right() -> None:
    known = Replicas()
    one, other = Tensor(1.0), Tensor(1.0)
    known.add([one])
    assert (known.number(one), known.number(other)) == (0, None)
    known._known[id(other)] = known._known.pop(id(one))
    assert known.number(other) is None


def test_without_the_variable_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Values().every == 0
    monkeypatch.setenv(VARIABLE, "often")
    assert Values().every == 0
