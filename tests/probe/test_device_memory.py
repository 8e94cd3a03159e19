"""What frameworks count of the memory on accelerators reaches the agent, and asking for it starts nothing.

The samples have the shapes that PyTorch 2.13's documents, a recorded `memory_stats()` of a GPU under JAX
(William-Baker's and others' public measurements print the same keys) and TensorFlow 2.21's documents show.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import DeviceMemory
from allaboard.probe import device_memory, layout, member
from allaboard.probe.adapters._torch.step_number import Steps
from allaboard.probe.blackbox import Box
from probed import Program

JAX_STATS = {
    "num_allocs": 63, "bytes_in_use": 14983168, "peak_bytes_in_use": 2431167744,
    "largest_alloc_size": 2415922432, "bytes_limit": 12701761536, "bytes_reserved": 0,
    "peak_bytes_reserved": 0, "largest_free_block_bytes": 0, "pool_bytes": 3228616192,
    "peak_pool_bytes": 3228616192,
}  # fmt: skip


def torch_cuda(initialized: bool = True) -> Any:
    """As much of `torch.cuda` as is asked; before it is initialised, a question fails the test."""

    def ask(answer: Any) -> Any:
        def call(*_: Any) -> Any:
            assert initialized, "it would have initialised CUDA"
            return answer

        return call

    counts = {"current": 100, "peak": 700, "allocated": 9000, "freed": 8900}
    reserved = {"current": 800, "peak": 800, "allocated": 800, "freed": 0}
    stats = {
        "allocated_bytes": {"all": counts, "large_pool": {}, "small_pool": {}},
        "reserved_bytes": {"all": reserved},
        "num_alloc_retries": 4,
        "num_ooms": 1,
    }
    return SimpleNamespace(
        is_initialized=lambda: initialized,
        current_device=ask(3),
        memory_stats_as_nested_dict=ask(stats),
        get_device_properties=ask(SimpleNamespace(total_memory=1000)),
    )


def jax_bridge(**stats: Any) -> Any:
    """Backends with one device each, by platform."""
    return SimpleNamespace(
        _backends={
            platform: SimpleNamespace(
                local_devices=lambda answer=answer, number=number: [
                    SimpleNamespace(memory_stats=lambda: answer, local_hardware_id=number)
                ]
            )
            for number, (platform, answer) in enumerate(stats.items())
        }
    )


def tensorflow_context(initialized: bool, *devices: tuple[str, dict[str, int]]) -> Any:
    def ask(answer: Any) -> Any:
        assert initialized, "it would have made the context"
        return answer

    infos = {name.partition("/device:")[2]: info for name, info in devices}
    names = [SimpleNamespace(name=name) for name, _ in devices]
    context = SimpleNamespace(
        _initialized=initialized,
        list_logical_devices=lambda _: ask(names),
        get_memory_info=lambda name: ask(infos[name]),
    )
    return SimpleNamespace(_context=context)


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Box, OpenBox]:
    for module, _, _ in device_memory.READERS:
        monkeypatch.delitem(sys.modules, module, raising=False)
    path = tmp_path / f"{os.getpid()}.box"
    return Box(str(path)), OpenBox(path)


def imported(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


def read(boxes: tuple[Box, OpenBox]) -> DeviceMemory | None:
    device_memory.record_memory(boxes[0].map)
    return boxes[1].read_snapshot().memory


def test_torch(boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch) -> None:
    imported(monkeypatch, "torch", cuda=torch_cuda())
    expected = DeviceMemory(
        device=3, used_nbytes=100, reserved_nbytes=800, peak_nbytes=700, limit_nbytes=1000,
        retries=4, source="torch.cuda.memory_stats", sample=1,
    )  # fmt: skip
    assert read(boxes) == expected
    assert expected.unusable_nbytes == 100


def test_jax(boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = jax_bridge(cpu=None, cuda=JAX_STATS)
    imported(monkeypatch, "jax._src.xla_bridge", **vars(bridge))
    assert read(boxes) == DeviceMemory(
        device=1, used_nbytes=14983168, reserved_nbytes=3228616192, peak_nbytes=2431167744,
        limit_nbytes=12701761536, source="jax.Device.memory_stats", sample=1,
    )  # fmt: skip


def test_the_fullest_gpu_of_tensorflow(
    boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [
        ("/job:worker/replica:0/task:1/device:GPU:0", {"current": 5, "peak": 6}),
        ("/job:worker/replica:0/task:1/device:GPU:1", {"current": 7, "peak": 9}),
    ]
    contents = vars(tensorflow_context(True, *devices))
    imported(monkeypatch, "tensorflow.python.eager.context", **contents)
    assert read(boxes) == DeviceMemory(
        device=1, used_nbytes=7, peak_nbytes=9, sample=1,
        source="tf.config.experimental.get_memory_info",
    )  # fmt: skip


def test_nothing_is_started_to_be_read(
    boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(boxes) is None
    imported(monkeypatch, "torch", cuda=torch_cuda(initialized=False))
    imported(monkeypatch, "jax._src.xla_bridge", _backends={})
    context = tensorflow_context(False, ("/device:GPU:0", {"current": 1, "peak": 1}))
    imported(monkeypatch, "tensorflow.python.eager.context", **vars(context))
    assert read(boxes) is None
    vars(sys.modules["tensorflow.python.eager.context"])["_context"] = None
    assert read(boxes) is None


def test_what_cannot_be_counted_is_left_out(
    boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(monkeypatch, "torch")  # still being imported: it has no `cuda` yet
    imported(monkeypatch, "jax._src.xla_bridge", **vars(jax_bridge(cpu=None, tpu=None)))
    assert read(boxes) is None
    imported(monkeypatch, "jax._src.xla_bridge", **vars(jax_bridge(cuda={"bytes_in_use": 1 << 70})))
    assert read(boxes) is None


def test_a_record_that_is_being_written_is_left_out(boxes: tuple[Box, OpenBox]) -> None:
    box, reader = boxes
    numbers = (10, 20, 30, 40, -5, 9, 0)
    layout.MEMORY.pack_into(box.map, layout.MEMORY_AT, 2, *numbers, 1)
    assert reader.read_snapshot().memory is None
    layout.MEMORY.pack_into(box.map, layout.MEMORY_AT, 2, *numbers, 2)
    seen = reader.read_snapshot().memory
    assert seen is not None and (seen.retries, seen.source) == (-1, "")


def test_it_is_read_after_a_step_once_in_five_seconds(
    boxes: tuple[Box, OpenBox], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(monkeypatch, "torch", cuda=torch_cuda())
    process = member.here
    monkeypatch.setattr(process, "box", boxes[0])
    monkeypatch.setattr(process, "memory_due", 0.0)
    monkeypatch.setattr(process, "stepping", None)
    for _ in range(3):
        member.step()
    seen = boxes[1].read_snapshot().memory
    assert seen is not None and seen.sample == 1
    monkeypatch.setattr(process, "memory_due", 0.0)
    member.step()
    seen = boxes[1].read_snapshot().memory
    assert seen is not None and seen.sample == 2


REAL = {
    "torch": """
import torch
torch.ones(2).sum()
""",
    "jax": """
import jax.numpy
from jax._src import xla_bridge
before = dict(xla_bridge._backends)
""",
    "tensorflow": """
import tensorflow as tf
from tensorflow.python.eager import context
""",
}
USED = {"torch": "", "jax": "jax.numpy.ones(2).sum()", "tensorflow": "tf.ones(2)"}
CHECKS = {
    "torch": "assert not torch.cuda.is_initialized()",
    "jax": "assert dict(xla_bridge._backends) == before",
    "tensorflow": "assert context._context is None or not context._context._initialized",
}
READ = """
from _allaboard_probe import device_memory, layout, member
known = set(__import__("sys").modules)
device_memory.record_memory(member.here.box.map)
assert layout.MEMORY.unpack_from(member.here.box.map, layout.MEMORY_AT)[0] == 0
assert set(__import__("sys").modules) == known
"""


@pytest.mark.zoo
@pytest.mark.parametrize("framework", REAL)
def test_a_framework_without_an_accelerator(tmp_path: Path, framework: str) -> None:
    program = Program(tmp_path, environment={"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"})
    code = REAL[framework] + READ + CHECKS[framework] + "\n" + USED[framework] + "\n" + READ
    ended = program.run(code + "print('read')")
    program.close()
    assert ended.out.strip().endswith("read"), ended.err


def test_steps_of_pytorch_have_it_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(str(tmp_path / f"{os.getpid()}.box"))
    monkeypatch.setattr(member.here, "box", box)
    monkeypatch.setattr(member.here, "memory_due", 0.0)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=torch_cuda()))
    box.phase(member.TRAINING, 1)
    count, optimizer, samples = Steps(), ModuleType("optimizer"), []
    monkeypatch.setattr(count, "only_id", id(optimizer))
    for due in (0.0, 0.0, float("inf")):
        member.here.memory_due = due
        count(optimizer, (), {})
        samples.append(layout.MEMORY.unpack_from(box.map, layout.MEMORY_AT)[0])
    assert samples == [1, 2, 2]
