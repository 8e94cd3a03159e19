"""Train on handwritten digits with ``model.fit`` under MultiWorkerMirroredStrategy.

Every worker runs this script with its own TF_CONFIG; for worker 0 of 2::

    TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:21000", "127.0.0.1:21001"]},
                "task": {"type": "worker", "index": 0}}' python examples/tf_keras_digits.py

It uses tf_keras (Keras 2), because the ``fit`` of Keras 3 does not work with several workers
under this strategy (TensorFlow 2.21).
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # read when TensorFlow is imported

import numpy as np
import tensorflow as tf
import tf_keras as keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="tf_keras model.fit with several workers")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="per worker")
    parser.add_argument("--lr", type=float, default=2e-3)
    return parser.parse_args()


def load_data() -> list[np.ndarray]:
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    # A fixed seed, because every worker has to make the same split.
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def build_model(lr: float) -> keras.Model:
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(lr),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def make_dataset(images: np.ndarray, labels: np.ndarray) -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((images, labels)).with_options(options)


def main() -> None:
    args = parse_args()
    # Before anything else in TensorFlow: the strategy connects to the other workers here.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    index = strategy.cluster_resolver.task_id or 0
    workers = strategy.num_replicas_in_sync
    print(f"worker {index} of {workers} is ready", flush=True)

    keras.utils.set_random_seed(0)
    train_x, test_x, train_y, test_y = load_data()
    global_batch = args.batch_size * workers
    train = make_dataset(train_x, train_y)
    train = train.shuffle(len(train_x), seed=0).repeat().batch(global_batch)
    test = make_dataset(test_x, test_y).batch(global_batch)
    with strategy.scope():
        model = build_model(args.lr)

    def print_epoch(epoch: int, logs: dict[str, float]) -> None:
        if index == 0:
            print(f"epoch {epoch + 1:3d}  loss {logs['loss']:.4f}", flush=True)

    start = time.perf_counter()
    model.fit(
        train,
        epochs=args.epochs,
        # With an endless dataset and a fixed number of steps no worker runs out before another.
        steps_per_epoch=len(train_x) // global_batch,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=print_epoch)],
        verbose=0,
    )
    # Every worker takes part, because evaluate is a joint operation like fit.
    _, accuracy = model.evaluate(test, verbose=0)
    if index == 0:
        seconds = time.perf_counter() - start
        print(f"test accuracy {accuracy:.3f} after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
