"""Train on handwritten digits with parameter servers in TensorFlow 1's style (tf.compat.v1).

Every process runs this script with its own TF_CONFIG; for worker 0 of 2 with one server::

    TF_CONFIG='{"cluster": {"ps": ["127.0.0.1:21000"],
                            "worker": ["127.0.0.1:21001", "127.0.0.1:21002"]},
                "task": {"type": "worker", "index": 0}}' python examples/tf1_ps_digits.py

Without --sync every worker applies its gradients when it has them; with it they are averaged over
all workers (SyncReplicasOptimizer).
"""

import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="TF1 parameter servers on digits")
    parser.add_argument("--steps", type=int, default=600, help="updates of the variables in all")
    parser.add_argument("--batch-size", type=int, default=32, help="per worker")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--sync", action="store_true", help="average over all workers")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    parser.add_argument("--checkpoints", help="a folder that the chief saves to and restores from")
    return parser.parse_args()


def load_data() -> list[np.ndarray]:
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def build(cluster: tf.train.ClusterSpec, device: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Two dense layers; their variables are placed on the servers in turn."""
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        w1 = tf.get_variable("w1", [64, 64])
        b1 = tf.get_variable("b1", [64], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [64, 10])
        b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        logits = tf.nn.relu(images @ w1 + b1) @ w2 + b2
    return images, labels, logits


class Score(tf.train.SessionRunHook):
    """Prints accuracy and loss on the test set just before the session is closed, and where it goes on
    when a session was made anew."""

    def __init__(self, fetches: list[tf.Tensor], feed: dict[tf.Tensor, np.ndarray]) -> None:
        self.fetches = fetches
        self.feed = feed

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        now = session.run(tf.train.get_global_step())
        if now:
            print(f"goes on after step {now}", flush=True)

    def end(self, session: tf.Session) -> None:
        accuracy, loss = session.run(self.fetches, self.feed)
        print(f"test accuracy {accuracy:.3f}, loss {loss:.4f}", flush=True)


def wait_for_chief(target: str, config: tf.ConfigProto) -> None:
    """MonitoredTrainingSession does it too, but looks only every 30 s."""
    missing = tf.report_uninitialized_variables(tf.global_variables())
    with tf.Session(target, config=config) as session:
        while session.run(missing).size:
            time.sleep(0.2)


def train(args: argparse.Namespace, server: tf.train.Server, config: dict) -> None:
    task, cluster = config["task"], tf.train.ClusterSpec(config["cluster"])
    job, index = task["type"], task["index"]
    has_chief = "chief" in config["cluster"]
    is_chief = job == "chief" or (index == 0 and not has_chief)
    workers = len(config["cluster"].get("worker", ())) + has_chief
    device = f"/job:{job}/task:{index}"

    train_x, test_x, train_y, test_y = load_data()
    images, labels, logits = build(cluster, device)
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        optimizer = tf.train.AdamOptimizer(args.lr)
        if args.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        update = optimizer.minimize(loss, global_step=step)

    hooks = [tf.train.StopAtStepHook(last_step=args.steps)]
    if args.sync:
        hooks.append(optimizer.make_session_run_hook(is_chief))
    # Without the filter a worker would wait at its start for the other workers, too.
    config_proto = tf.ConfigProto(device_filters=["/job:ps", device])
    if not is_chief:
        wait_for_chief(server.target, config_proto)
    random = np.random.default_rng(index + 100 * (job == "chief"))
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=args.checkpoints,
        save_checkpoint_steps=50,
        save_summaries_steps=0,
        log_step_count_steps=None,
        hooks=hooks,
        chief_only_hooks=[Score([accuracy, loss], {images: test_x, labels: test_y})],
        stop_grace_period_secs=2,
        config=config_proto,
    ) as session:
        mine = 0
        while not session.should_stop():
            batch = random.integers(len(train_x), size=args.batch_size)
            feed = {images: train_x[batch], labels: train_y[batch]}
            _, value, now = session.run([update, loss, step], feed)
            mine += 1
            if mine % 100 == 0:
                print(f"step {now:4d}  loss {value:.4f}", flush=True)
            time.sleep(args.pause)
    print(f"{job} {index} did {mine} of the {args.steps} steps", flush=True)


def main() -> None:
    args = parse_args()
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)  # every line here is deprecated
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        server.join()  # it serves for ever
    train(args, server, config)


if __name__ == "__main__":
    main()
