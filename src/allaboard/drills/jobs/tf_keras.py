"""A small Keras job under MultiWorkerMirroredStrategy that fails as --fault says, on every worker.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import sys
import tempfile
import time


def train_by_fit(tf, strategy):
    """Train as the tutorials for Keras 2 do."""
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    images, labels = tf.random.normal([64, 8]), tf.random.normal([64, 1])
    model.fit(tf.data.Dataset.from_tensor_slices((images, labels)).batch(8), epochs=1, verbose=0)


def read_one_file(tf, strategy):
    """Distribute a dataset that is one file."""
    path = os.path.join(tempfile.mkdtemp(), "train.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(64):
            writer.write(b"%d" % number)
    dataset = tf.data.TFRecordDataset([path]).batch(8)
    for batch in strategy.experimental_distribute_dataset(dataset):
        print(batch, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=("fit", "one-file"), default="fit")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=0)
    parser.add_argument("--mark")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    if options.mark:
        with open(options.mark, "w") as file:
            file.write(str(time.time()))
    if options.fault == "fit":
        train_by_fit(tf, strategy)
    else:
        read_one_file(tf, strategy)


if __name__ == "__main__":
    main()
