"""A TensorFlow 1 job with a parameter server, whose workers leave the moment of every step and its number,
as time.time(), in a file each; and its server those of its start. It trains until it is ended from outside.
"""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
PAUSE = 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for the moments")
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    import tensorflow.compat.v1 as tf

    moments = {"pid": os.getpid(), "first line": FIRST_LINE, "tensorflow": time.time()}
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        moments["server"] = time.time()
        (options.marks / f"ps-{os.getpid()}.json").write_text(json.dumps(moments))
        server.join()
    train(tf, options, server, cluster, task["index"])


def train(tf, options, server, cluster, index):
    device = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        images = tf.random.normal([8, options.width])
        labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
        table = tf.get_variable("table", [options.width, options.width])
        weights = tf.get_variable("weights", [options.width, 2])
        logits = tf.nn.relu(images @ table) @ weights
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        update = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    with (
        tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=index == 0,
            checkpoint_dir=options.checkpoints,
            save_checkpoint_secs=60,
            save_summaries_steps=0,
            log_step_count_steps=None,
            stop_grace_period_secs=2,
            config=tf.ConfigProto(device_filters=["/job:ps", device]),
        ) as session,
        (options.marks / f"steps-{index}").open("w", buffering=1) as file,
    ):
        while True:
            _, now = session.run([update, step])
            file.write(f"{time.time()} {now}\n")
            time.sleep(PAUSE)


if __name__ == "__main__":
    main()
