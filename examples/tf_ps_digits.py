"""Train on handwritten digits with TensorFlow 2's ParameterServerStrategy and a ClusterCoordinator.

Every process runs this script with its own TF_CONFIG; for the chief of one server and two workers::

    TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:21000"], "ps": ["127.0.0.1:21001"],
                            "worker": ["127.0.0.1:21002", "127.0.0.1:21003"]},
                "task": {"type": "chief", "index": 0}}' python examples/tf_ps_digits.py

Only the chief runs the program; workers and servers wait for what it sends them, for ever.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# A worker that is not up yet is waited for, instead of failing the chief's first call.
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="ParameterServerStrategy on digits")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=50, help="steps of an epoch, of all workers")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two epochs")
    parser.add_argument("--checkpoints", help="a folder to save to and restore from")
    return parser.parse_args()


def load_data() -> list[np.ndarray]:
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


class Net(tf.Module):
    """Two dense layers; under the strategy's scope their variables live on the servers."""

    def __init__(self) -> None:
        super().__init__()
        init = tf.random_normal_initializer(stddev=0.1, seed=0)
        self.w1 = tf.Variable(init([64, 64]))
        self.b1 = tf.Variable(tf.zeros([64]))
        self.w2 = tf.Variable(init([64, 10]))
        self.b2 = tf.Variable(tf.zeros([10]))

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(images @ self.w1 + self.b1) @ self.w2 + self.b2


def serve(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver) -> None:
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    )
    server.join()


def train(
    args: argparse.Namespace,
    resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver,
) -> None:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    train_x, test_x, train_y, test_y = load_data()
    with strategy.scope():
        net = Net()
        done = tf.Variable(0, dtype=tf.int64)

    def make_dataset() -> tf.data.Dataset:
        data = tf.data.Dataset.from_tensor_slices((train_x, train_y))
        return data.shuffle(len(train_x)).repeat().batch(args.batch_size)

    @tf.function
    def train_step(batches: tf.data.Iterator) -> tf.Tensor:
        images, labels = next(batches)
        with tf.GradientTape() as tape:
            logits = net(images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, net.trainable_variables)
        for variable, gradient in zip(net.trainable_variables, gradients, strict=True):
            variable.assign_sub(args.lr * gradient)
        done.assign_add(1)
        return loss

    keeper = None
    if args.checkpoints:
        checkpoint = tf.train.Checkpoint(net=net, done=done)
        keeper = tf.train.CheckpointManager(checkpoint, args.checkpoints, max_to_keep=2)
        if keeper.restore_or_initialize():
            print(f"goes on after step {int(done.numpy())}", flush=True)

    per_worker = iter(coordinator.create_per_worker_dataset(make_dataset))
    start = time.perf_counter()
    while int(done.numpy()) < args.epochs * args.steps:
        losses = [coordinator.schedule(train_step, args=(per_worker,)) for _ in range(args.steps)]
        coordinator.join()
        mean = np.mean([loss.fetch() for loss in losses])
        print(f"step {int(done.numpy()):4d}  loss {mean:.4f}", flush=True)
        if keeper is not None:
            keeper.save()
        time.sleep(args.pause)
    logits = net(tf.constant(test_x))
    right = np.argmax(logits.numpy(), axis=1) == test_y
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(test_y, logits))
    seconds = time.perf_counter() - start
    print(f"test accuracy {right.mean():.3f}, loss {loss:.4f}, after {seconds:.1f} s", flush=True)


def main() -> None:
    args = parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        serve(resolver)
    else:
        train(args, resolver)


if __name__ == "__main__":
    main()
