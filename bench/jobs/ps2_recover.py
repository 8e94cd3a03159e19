"""A TensorFlow 2 job with a parameter server, whose chief leaves the moment of every update and its number,
as time.time(), in a file; and its server those of its start. It trains until it is ended from outside.
"""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")
PAUSE = 0.01
SAVE = 60.0
"""Seconds between two checkpoints; the first is written after the first update."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for the moments")
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    import tensorflow as tf

    moments = {"pid": os.getpid(), "first line": FIRST_LINE, "tensorflow": time.time()}
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        train(tf, options, resolver)
        return
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    )
    if resolver.task_type == "ps":
        moments["server"] = time.time()
        (options.marks / f"ps-{os.getpid()}.json").write_text(json.dumps(moments))
    server.join()


def train(tf, options, resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        table = tf.Variable(tf.random.normal([options.width, options.width], stddev=0.1))
        weights = tf.Variable(tf.zeros([options.width, 2]))
        done = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def update():
        images = tf.random.normal([8, options.width])
        labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(images @ table) @ weights
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        for variable, gradient in zip(
            (table, weights), tape.gradient(loss, (table, weights)), strict=True
        ):
            variable.assign_sub(1e-3 * gradient)
        done.assign_add(1)

    checkpoint = tf.train.Checkpoint(table=table, weights=weights, done=done)
    keeper = tf.train.CheckpointManager(checkpoint, options.checkpoints, max_to_keep=2)
    keeper.restore_or_initialize()
    saved = float("-inf")
    with (options.marks / "steps-0").open("a", buffering=1) as file:
        while True:
            coordinator.schedule(update)
            coordinator.join()
            file.write(f"{time.time()} {int(done.numpy())}\n")
            if time.monotonic() - saved > SAVE:
                keeper.save()
                saved = time.monotonic()
            time.sleep(PAUSE)


if __name__ == "__main__":
    main()
