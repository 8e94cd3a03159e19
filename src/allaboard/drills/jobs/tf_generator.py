"""A small MultiWorkerMirroredStrategy job that takes its data from a Python generator, which a thread of its
own fills; with --fault this thread ends on rank --guilty.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    guilty = bool(options.fault) and index == options.guilty
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import numpy as np
    import tensorflow as tf

    rows = queue.Queue(64)
    random = np.random.default_rng(index)

    def read():
        count = 0
        while True:
            if guilty and count == 8 * options.at_step:
                if options.mark:
                    Path(options.mark).write_text(str(time.time()))
                return  # an end of its input that it should not have met
            rows.put(random.normal(size=64).astype("float32"))
            count += 1

    def batches():
        while True:
            yield rows.get()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    threading.Thread(target=read, daemon=True).start()
    signature = tf.TensorSpec((64,), tf.float32)
    data = tf.data.Dataset.from_generator(batches, output_signature=signature).batch(8)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([64, 1]))

    def replica_step(images):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(images @ weights - 1.0))
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(0.01 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
        return loss

    @tf.function
    def train_step(images):
        losses = strategy.run(replica_step, args=(images,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    for step, images in enumerate(data, 1):
        train_step(images)
        time.sleep(0.005)
        if step == options.steps:
            break


if __name__ == "__main__":
    main()
