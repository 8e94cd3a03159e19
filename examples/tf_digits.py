"""Train on handwritten digits with TensorFlow's MultiWorkerMirroredStrategy and a custom loop.

Every worker runs this script with its own TF_CONFIG; for worker 0 of 2::

    TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:21000", "127.0.0.1:21001"]},
                "task": {"type": "worker", "index": 0}}' python examples/tf_digits.py
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MultiWorkerMirroredStrategy on digits")
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


def build_model() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )


def main() -> None:
    args = parse_args()
    # Before anything else in TensorFlow: the strategy connects to the other workers here.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    index = strategy.cluster_resolver.task_id or 0
    workers = strategy.num_replicas_in_sync
    print(f"worker {index} of {workers} is ready", flush=True)

    tf.keras.utils.set_random_seed(0)
    train_x, test_x, train_y, test_y = load_data()
    global_batch = args.batch_size * workers
    # A fixed number of steps from an endless dataset, so that no worker runs out before another.
    steps = len(train_x) // global_batch
    dataset = tf.data.Dataset.from_tensor_slices((train_x, train_y))
    dataset = dataset.shuffle(len(train_x), seed=0).repeat().batch(global_batch)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batches = iter(strategy.experimental_distribute_dataset(dataset.with_options(options)))

    with strategy.scope():
        model = build_model()
        optimizer = tf.keras.optimizers.Adam(args.lr)
        optimizer.build(model.trainable_variables)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = loss_fn(labels, model(images, training=True))
            # Divided by the global batch, because the gradients of the workers are summed.
            loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def distributed_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(train_step, args=(images, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for _ in range(steps):
            total += float(distributed_step(*next(batches)))
        if index == 0:
            print(f"epoch {epoch:3d}  loss {total / steps:.4f}", flush=True)

    # All replicas are equal, and the forward pass needs nobody else, so every worker scores the
    # whole (small) test set by itself and none is left waiting.
    right = np.argmax(model(test_x, training=False).numpy(), axis=1) == test_y
    if index == 0:
        seconds = time.perf_counter() - start
        print(f"test accuracy {right.mean():.3f} after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
