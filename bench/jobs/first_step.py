"""Four moments of one rank, as time.time(): its first line, init done, first training step done, last line.

They are printed, and written to ``rank-N.json`` in the folder of ``--marks``, N the host's name where
nobody told a RANK.
"""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import argparse
import json
import os
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for the moments")
    parser.add_argument("--first-line-only", action="store_true", help="without any framework")
    parser.add_argument("--framework", default="torch", choices=sorted(TRAIN))
    options = parser.parse_args()
    moments = {"first line": FIRST_LINE}
    if not options.first_line_only:
        TRAIN[options.framework](moments)
    moments["end"] = time.time()
    text = json.dumps(moments)
    print(text, flush=True)
    name = os.environ.get("RANK") or os.uname().nodename
    (options.marks / f"rank-{name}.json").write_text(text)


def train_torch(moments):
    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # imported by DDP after init, it would keep the group from its end
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    moments["init done"] = time.time()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images, labels = torch.randn(8, 64), torch.randint(0, 2, (8,))
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    moments["first step"] = time.time()
    # PyTorch 2.13 hangs when the group ends while a Gloo thread still lets go of its last work.
    time.sleep(0.2)
    dist.destroy_process_group()


def train_tensorflow(moments):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    moments["init done"] = time.time()
    with strategy.scope():
        weights = tf.Variable(tf.zeros([64, 2]))

    def replica(images):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(images, weights) ** 2)
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(0.05 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
        return loss

    tf.function(lambda images: strategy.run(replica, args=(images,)))(tf.ones([8, 64]))
    moments["first step"] = time.time()


def train_jax(moments):
    os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
    import jax

    place = os.environ["JAX_COORDINATOR_ADDRESS"]
    rank, size = (int(os.environ[f"JAX_{n}"]) for n in ("PROCESS_ID", "NUM_PROCESSES"))
    jax.distributed.initialize(place, size, rank)
    moments["init done"] = time.time()
    from jax.experimental import multihost_utils

    gradient = jax.grad(lambda w: (jax.numpy.ones((8, 64)) @ w).sum())(jax.numpy.zeros((64, 2)))
    multihost_utils.process_allgather(gradient).sum(0)
    moments["first step"] = time.time()
    jax.distributed.shutdown()


TRAIN = {"torch": train_torch, "tensorflow": train_tensorflow, "jax": train_jax}

if __name__ == "__main__":
    main()
