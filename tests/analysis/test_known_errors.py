"""What the frameworks of this environment really raise is known, and ordinary errors are not."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.facts import Raised
from forked_programs import raised_by

SAID = [
    (
        "Default process group has not been initialized, please make sure to call",
        "init_process_group before",
    ),
    ("CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronous", "LOCAL_RANK"),
    (
        "NCCL error\nDuplicate GPU detected : rank 3 and rank 1 both on CUDA device 5000",
        "ranks 3 and 1",
    ),
    ("ProcessGroupNCCL is only supported with GPUs, no GPUs found!", "sees no GPU"),
    (
        "[enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: eth7",
        "interface eth7:",
    ),
    ("Illegal seek", "file:// rendezvous"),
    ("EOF when reading a line", "sys.stdin.isatty()"),
    (
        "DDP expects same model across all ranks, but Rank 1 has 4 params",
        "same model on every rank",
    ),
    (
        "[1]: params[0] in this process with sizes [10, 20] appears not to match sizes of the same param",
        "same model on every rank",
    ),
    (
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "module.w".',
        "model.module",
    ),
    (
        'Error(s) in loading state_dict for Net:\n\tUnexpected key(s) in state_dict: "module.w"',
        "save model",
    ),
    ("HTTPSConnectionPool(host='hub', port=443): Max retries exceeded", "HF_HUB_OFFLINE=1"),
    ("No backend type associated with device type cpu", "the tensor is on cpu"),
    ("'LOCAL_RANK'", "start it with a launcher that sets LOCAL_RANK"),
]
REAL = [
    (
        "import torch.distributed as d\nd.init_process_group('gloo')",
        "start it with a launcher that sets RANK",
    ),
    ("import torch.distributed as d\nd.get_rank() if d.is_initialized() else d.get_world_size()\n"
     "d.distributed_c10d._get_default_group()", "call init_process_group before it"),
    (
        "import torch.distributed as d\nfor _ in range(2):\n"
        " d.init_process_group('gloo', store=d.HashStore(), rank=0, world_size=1)",
        "call init_process_group once per process",
    ),
    ("import torch.distributed as d\nd.init_process_group('nccl', store=d.HashStore(), rank=0, world_size=1)",
     "backend='gloo'"),  # of a build without NCCL, or one for CUDA on a host without a GPU
    ("import os\nos.environ['LOCAL_RANK']", "start it with a launcher that sets LOCAL_RANK"),
    ("import jax\njax.distributed.initialize()", "give jax.distributed.initialize() all three of"),
    (
        "import jax\njax.numpy.ones(3)\njax.distributed.initialize('127.0.0.1:1', 1, 0)",
        "first in the program",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "helps"), SAID)
def test_a_known_error_is_told_with_what_helps(message: str, helps: str) -> None:
    assert helps in known_error_advice(Raised(type="RuntimeError", message=message, raised_at=1.0))


@pytest.fixture(scope="module")
def raised_today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the programs raises, by its text."""
    programs = [code for code, _ in REAL]
    return raised_by(tmp_path_factory.mktemp("raised"), "import torch.distributed", programs)


@pytest.mark.parametrize(("code", "helps"), REAL)
def test_what_is_raised_today_is_known(code: str, helps: str, raised_today: dict[str, str]) -> None:
    said = raised_today[code]
    assert helps in known_error_advice(Raised(type="Error", message=said, raised_at=1.0)), said


@pytest.mark.parametrize(
    "message",
    ["", "'rank'", "bad batch", "shape mismatch: 3 and 4", "environment variable FOO is bad"],
)
def test_other_errors_have_no_advice(message: str) -> None:
    assert known_error_advice(Raised(type="KeyError", message=message, raised_at=1.0)) == ""
