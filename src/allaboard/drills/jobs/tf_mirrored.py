"""A MirroredStrategy job on four devices of one CPU, whose global batch --fault makes too small or odd.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import sys
import time

ROWS = {"empty-replicas": 2, "uneven-replicas": 10}


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        with open(path, "w") as file:
            file.write(str(time.time()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    strategy = tf.distribute.MirroredStrategy(devices)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]))
    data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 4])).repeat()
    batches = iter(
        strategy.experimental_distribute_dataset(data.batch(ROWS.get(options.fault, 32)))
    )

    def replica_step(images):
        weights.assign_add(tf.zeros([4, 1]))
        return tf.reduce_sum(images @ weights)

    @tf.function
    def train_step(images):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(images,)), axis=None)

    mark(options.mark)
    for _ in range(options.steps):
        total = train_step(next(batches))
        time.sleep(0.005)
    print(f"trained {options.steps} steps, sum {float(total):.1f}", flush=True)


if __name__ == "__main__":
    main()
