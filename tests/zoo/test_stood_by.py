"""Ranks that stood by train on like new ones: real frameworks, real kills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hurt import Run

OPTIONS = ("-n", "2", "--on-failure", "restart", "--standby", "2", "--grace", "2")
JAX = """
import os
os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
import sys
is_warm = "jax" in sys.modules
import time
import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

jax.distributed.initialize()
weights = jnp.zeros((16, 2))
slope = jax.jit(jax.grad(lambda w, x: ((x @ w - 1.0) ** 2).mean()))
for step in range(10 if is_warm or "COLD" in os.environ else 1_000_000):
    images = jax.random.normal(jax.random.key(step), (8, 16))
    weights -= 0.1 * multihost_utils.process_allgather(slope(weights, images)).mean(0)
    time.sleep(0.01)
print(f"warm {is_warm}: rank {jax.process_index()} has {float(weights.sum()):.6f}", flush=True)
jax.distributed.shutdown()
"""
TORCH = """
import os, sys, time
is_warm = "torch" in sys.modules
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(7)
model = DistributedDataParallel(nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(10 if is_warm or "COLD" in os.environ else 1_000_000):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
    time.sleep(0.01)
print(f"warm {is_warm}: rank {dist.get_rank()} has {loss.item():.6f}", flush=True)
time.sleep(0.2)
dist.destroy_process_group()
"""
TENSORFLOW = """
import os, sys, time
is_warm = "tensorflow" in sys.modules
import tensorflow as tf

tf.random.set_seed(7)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros([16, 2]))


def replica(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(images, weights) - 1.0) ** 2)
    context = tf.distribute.get_replica_context()
    gradient = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
    weights.assign_sub(0.05 * gradient)


step = tf.function(lambda images: strategy.run(replica, args=(images,)))
for _ in range(10 if is_warm or "COLD" in os.environ else 1_000_000):
    step(tf.random.normal([8, 16]))
    time.sleep(0.01)
rank = os.environ["RANK"]
print(f"warm {is_warm}: rank {rank} has {float(tf.reduce_sum(weights)):.6f}", flush=True)
"""


@pytest.mark.zoo
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(TORCH, id="torch"),
        pytest.param(JAX, id="jax", marks=pytest.mark.long),
        pytest.param(TENSORFLOW, id="tensorflow", marks=pytest.mark.long),
    ],
)
def test_who_stood_by_trains_as_a_new_process_does(tmp_path: Path, script: str) -> None:
    (tmp_path / "train.py").write_text(script)
    cold = Run(tmp_path / "cold", "-n", "2", "--env", "COLD=1", str(tmp_path / "train.py"))
    cold.end()
    run = Run(tmp_path / "run", *OPTIONS, str(tmp_path / "train.py"))
    run.wait_for("2 processes stand by for the next round")
    run.hurt(1)
    assert run.end()["restarts"] == 1
    assert "2 of 2 workers stood by" in run.text
    results = [dict(re.findall(r"rank (\d) has ([-0-9.]+)", r.text)) for r in (cold, run)]
    assert results[0].keys() == {"0", "1"} and results[0] == results[1]
    assert run.text.count("warm True") == 2 and cold.text.count("warm False") == 2
