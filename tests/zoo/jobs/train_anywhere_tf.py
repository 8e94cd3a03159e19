"""A TensorFlow script that writes its TF_CONFIG from whatever launcher there is; the hosts are h0, h1, …"""

import json
import os
import sys

RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")
rank, size = (
    next(int(os.environ[n]) for n in names if n in os.environ) for names in (RANKS, SIZES)
)
workers = [f"h{i}:29500" for i in range(size)]
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
)
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros([16, 2]))


def replica_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(images, weights) - 1.0) ** 2)
    gradient = tape.gradient(loss, weights) / strategy.num_replicas_in_sync
    context = tf.distribute.get_replica_context()
    weights.assign_sub(0.1 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))


train_step = tf.function(lambda images: strategy.run(replica_step, args=(images,)))
for _ in range(20):
    train_step(tf.random.normal([8, 16]))
print(f"rank {rank} of {strategy.num_replicas_in_sync} trained 20 steps", flush=True)
