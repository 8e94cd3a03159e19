"""Reads event files with TensorBoard itself, for the tests of what is written for it."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest


def read_events(folder: Path) -> Any:
    """Return TensorBoard's accumulator of the folder, loaded. Skips the test where it is not installed."""
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    # With this module TensorBoard reads files without loading TensorFlow, which takes seconds.
    sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("notf"))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def scalars_of(accumulator: Any, tag: str) -> list[tuple[int, float]]:
    """Return the steps and values of a scalar."""
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def texts_of(accumulator: Any, tag: str) -> list[str]:
    """Return the texts of a tag, as its text plugin gets them."""
    assert tag + "/text_summary" in accumulator.PluginTagToContent("text")
    events = accumulator.Tensors(tag + "/text_summary")
    return [event.tensor_proto.string_val[0].decode() for event in events]
