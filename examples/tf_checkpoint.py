"""Train on handwritten digits with MultiWorkerMirroredStrategy, and go on from the last checkpoint.

Started again, by a person or by a launcher, every worker finds the newest checkpoint and continues with
the next step; the result is that of a run that never failed::

    allaboard run -n 2 --on-failure restart examples/tf_checkpoint.py --folder checkpoints
"""

import argparse
import os
import shutil
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MultiWorkerMirroredStrategy with checkpoints")
    parser.add_argument("--folder", type=Path, default=Path("tf_checkpoints"))
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=32, help="per worker")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    return parser.parse_args()


def batch(step: int, size: int, total: int) -> np.ndarray:
    """The indices of one global batch, a function of the step alone: whoever goes on in the middle of
    an epoch gets the batches that were still to come."""
    epoch, at = divmod(step, total // size)
    return np.random.default_rng(epoch).permutation(total)[at * size : (at + 1) * size]


def build_model() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((64,)),
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
    tf.keras.utils.set_random_seed(0)
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    global_batch = args.batch_size * workers

    with strategy.scope():
        model = build_model()
        optimizer = tf.keras.optimizers.Adam(args.lr)
        optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    # Every worker has to call save, since replicas are read together; only one may write the files.
    own = args.folder if index == 0 else args.folder / f"of-worker-{index}"
    manager = tf.train.CheckpointManager(checkpoint, str(own), max_to_keep=2)
    newest = tf.train.latest_checkpoint(str(args.folder))
    done = 0
    if newest:
        checkpoint.restore(newest).assert_existing_objects_matched()
        done = int(newest.rpartition("-")[2])  # the number that save was given
        if index == 0:
            print(f"going on after step {done}", flush=True)
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

    for step in range(done, args.steps):
        mine = batch(step, global_batch, len(labels))[index::workers]
        loss = distributed_step(tf.constant(images[mine]), tf.constant(labels[mine]))
        if (step + 1) % args.every == 0:
            manager.save(checkpoint_number=step + 1)
            if index == 0:
                print(f"step {step + 1:4d}  loss {float(loss):.4f}", flush=True)
            else:
                shutil.rmtree(own, ignore_errors=True)
        time.sleep(args.pause)

    scores = model(images, training=False)
    right = (np.argmax(scores.numpy(), axis=1) == labels).mean()
    whole = float(tf.reduce_mean(loss_fn(labels, scores)))
    if index == 0:
        print(f"after step {args.steps}: loss {whole:.6f}, accuracy {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
