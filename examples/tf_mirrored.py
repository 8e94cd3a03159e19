"""Train on handwritten digits with MirroredStrategy: one process, several devices.

Without GPUs it splits the CPU into two logical devices, so it runs on any machine::

    python examples/tf_mirrored.py
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
    parser = argparse.ArgumentParser(description="MirroredStrategy on digits")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="per device")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--cpu-devices", type=int, default=2, help="used when there is no GPU")
    return parser.parse_args()


def load_data() -> list[np.ndarray]:
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def pick_devices(cpu_devices: int) -> list[str]:
    if tf.config.list_physical_devices("GPU"):
        return [device.name for device in tf.config.list_logical_devices("GPU")]
    # Has to come before TensorFlow starts its runtime, that is before the first tensor.
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * cpu_devices
    )
    return [device.name for device in tf.config.list_logical_devices("CPU")]


def build_model() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )


def main() -> None:
    args = parse_args()
    strategy = tf.distribute.MirroredStrategy(pick_devices(args.cpu_devices))
    print(f"{strategy.num_replicas_in_sync} devices are ready", flush=True)

    tf.keras.utils.set_random_seed(0)
    train_x, test_x, train_y, test_y = load_data()
    global_batch = args.batch_size * strategy.num_replicas_in_sync
    steps = len(train_x) // global_batch
    dataset = tf.data.Dataset.from_tensor_slices((train_x, train_y))
    dataset = dataset.shuffle(len(train_x), seed=0).batch(global_batch, drop_remainder=True)
    batches = strategy.experimental_distribute_dataset(dataset)

    with strategy.scope():
        model = build_model()
        optimizer = tf.keras.optimizers.Adam(args.lr)
        optimizer.build(model.trainable_variables)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train_step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = loss_fn(labels, model(images, training=True))
            # Divided by the global batch, because the gradients of the devices are summed.
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
        total = sum(float(distributed_step(images, labels)) for images, labels in batches)
        print(f"epoch {epoch:3d}  loss {total / steps:.4f}", flush=True)

    right = np.argmax(model(test_x, training=False).numpy(), axis=1) == test_y
    seconds = time.perf_counter() - start
    print(f"test accuracy {right.mean():.3f} after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
