"""Each known mistake is recognised by its own wording, has cause and remedy, and its near miss has none."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.known_errors import known_remedy
from allaboard.analysis.failures.mistakes.installation_mistakes import INSTALLATION_MISTAKES
from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake
from allaboard.analysis.failures.mistakes.storage_mistakes import STORAGE_MISTAKES
from allaboard.analysis.failures.mistakes.tensorflow_mistakes import TENSORFLOW_MISTAKES
from allaboard.analysis.failures.mistakes.torch_mistakes import TORCH_MISTAKES
from allaboard.facts import Frame, Raised
from forked_programs import raised_by

MISTAKES = (*STORAGE_MISTAKES, *TORCH_MISTAKES, *TENSORFLOW_MISTAKES, *INSTALLATION_MISTAKES)
KERAS = Frame(
    "/v/site-packages/keras/src/utils/traceback_utils.py", 122, "error_handler", "raise e"
)


def raised(message: str, *frames: Frame, where: Frame | None = None) -> Raised:
    return Raised(type="RuntimeError", message=message, raised_at=1.0, frames=frames, where=where)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.sample[:40])
def test_its_sample_has_its_cause_and_remedy(mistake: KnownMistake) -> None:
    file, text = mistake.sample_frame
    frames = (Frame(file, 7, "f", text),) if file else ()
    remedy = known_remedy(raised(mistake.sample, *frames))
    assert remedy == mistake.remedy_of(raised(mistake.sample, *frames))
    assert remedy is not None
    assert remedy.cause
    assert remedy.fix
    assert "{}" not in remedy.cause + remedy.fix
    assert "()" not in remedy.cause


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.sample[:40])
def test_its_near_miss_is_not_known(mistake: KnownMistake) -> None:
    remedy = mistake.remedy_of(raised(mistake.near_miss, KERAS))
    assert remedy is None
    assert known_remedy(raised(f"loaded the batch: {mistake.near_miss[:12]}")) is None


@pytest.mark.parametrize(
    ("error", "cause", "fix"),
    [
        (
            raised(
                "Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor: shape=(4, 1)>\n", KERAS
            ),
            "Keras 3 does not support",
            "TF_USE_LEGACY_KERAS=1",
        ),
        (
            raised(
                "Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor>",
                where=Frame("/w/train.py", 3, "main", "model.fit(data, epochs=3)"),
            ),
            "Keras 3 does not support",
            "tf_keras",
        ),
        (
            raised(
                "Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor>",
                where=Frame("/w/train.py", 3, "main", "loss = step(next(batches))"),
            ),
            "outside of strategy.run",
            "strategy.run(step",
        ),
        (
            raised(
                'in user code:\n\n    File "train.py", line 9, in step  *\n    ValueError: Please use '
                "`tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for loss reduction when "
                "losses are used with `tf.distribute.Strategy`, except for specifying losses in "
                "`Model.compile()` for use by the built-in training looop `Model.fit()`."
            ),
            "default reduction",
            "compute_average_loss",
        ),
        (
            raised("Unable to find address for: ^docker0,lo"),
            "NCCL's notation",
            "GLOO_SOCKET_IFNAME",
        ),
        (raised("Unable to find address for: =eth0"), "NCCL's notation", "GLOO_SOCKET_IFNAME"),
        (raised("Unable to find address for: 192.168.7.2"), "not an address", "ip -br address"),
        (raised("Unable to find address for: ens7"), "", "no interface ens7"),
        (
            raised("'DataParallel' object has no attribute 'config'"),
            "no config",
            "model.module.config",
        ),
        (
            raised(
                "Could not apply FILE based sharding: the dataset only has 3 file(s), which is not enough "
                "for the required 8 shards/workers."
            ),
            "3 file(s) for 8 workers",
            "AutoShardPolicy.DATA",
        ),
    ],
)
def test_variations_are_told_apart(error: Raised, cause: str, fix: str) -> None:
    remedy = known_remedy(error)
    assert remedy is not None
    assert cause in remedy.cause
    assert fix in remedy.fix


DDP = """
import torch, torch.distributed as d
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
d.init_process_group('gloo', store=d.HashStore(), rank=0, world_size=1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(4, 1), nn.Linear(4, 1)
    def forward(self, x):
        return self.used(x)
def train(model, steps=2):
    for _ in range(steps):
        model(torch.ones(2, 4)).sum().backward()
"""
REAL = [
    ("train(DDP(Net()))", "no part in the loss"),
    (
        "from torch.utils.checkpoint import checkpoint\n"
        "class Twice(Net):\n"
        "    def forward(self, x):\n"
        "        x = x.requires_grad_()\n"
        "        a = checkpoint(self.used, x, use_reentrant=True)\n"
        "        return a + checkpoint(self.used, x, use_reentrant=True)\n"
        "model = Twice()\nmodel.other.requires_grad_(False)\ntrain(DDP(model, find_unused_parameters=True))",
        "gradient of one parameter twice",
    ),
    ("DDP(Net()).generate", "no generate"),
    (
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "DataLoader([1, 2], shuffle=True, sampler=DistributedSampler([1, 2]))",
        "cannot shuffle beside a sampler",
    ),
    ("DDP(Net().requires_grad_(False))", "nothing to do"),
    ("DDP(Net(), device_ids=[1])", "was given device_ids"),
    (
        "import os\nos.environ['GLOO_SOCKET_IFNAME'] = '^docker0,lo'\nd.destroy_process_group()\n"
        "d.init_process_group('gloo', store=d.HashStore(), rank=0, world_size=1)",
        "NCCL's notation",
    ),
    ("nn.SyncBatchNorm(3)(torch.ones(2, 3))", "works on GPUs only"),
]


PRELOAD = "import torch, torch._dynamo, torch.distributed, torch.nn.parallel"
"""With what the first model of DDP imports."""


@pytest.fixture(scope="module")
def raised_today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the programs raises, by its text; "" for nothing."""
    programs = [DDP + code for code, _ in REAL]
    return raised_by(tmp_path_factory.mktemp("raised"), PRELOAD, programs)


@pytest.mark.parametrize(("code", "cause"), REAL, ids=lambda text: text[:30])
def test_what_pytorch_raises_today_is_known(
    code: str, cause: str, raised_today: dict[str, str]
) -> None:
    remedy = known_remedy(raised(raised_today[DDP + code]))
    assert remedy is not None, raised_today[DDP + code]
    assert cause in remedy.cause
