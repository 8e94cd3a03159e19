"""Servers with large variables, one element of each of which changes with each step; what those are is
printed. Nothing is saved on disk."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)

import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=5, help="variables")
parser.add_argument("--megabytes", type=int, default=300, help="of each")
parser.add_argument("--pause", type=float, default=0.05)
parser.add_argument("--until", type=Path, help="a file that ends the training once it is there")
options = parser.parse_args()
tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
device = f"/job:worker/task:{task['index']}"
with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    large = [
        tf.get_variable(
            f"large{number}",
            [options.megabytes << 18],
            initializer=tf.zeros_initializer(),
            use_resource=bool(number % 2),
        )
        for number in range(options.count)
    ]
    changed = []
    for variable in large:
        with tf.device(variable.device):
            changed.append(tf.scatter_add(variable, [0, (options.megabytes << 18) - 1], [1.0, 1.0]))
    with tf.control_dependencies([c.op if hasattr(c, "op") else c for c in changed]):
        update = tf.assign_add(step, 1)
    values = []
    for variable in large:
        with tf.device(variable.device):
            values += tf.unstack(tf.gather(variable, [0, (options.megabytes << 18) - 1]))
chief = task["index"] == 0
with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=chief,
    save_summaries_steps=0,
    log_step_count_steps=None,
    stop_grace_period_secs=2,
    config=tf.ConfigProto(device_filters=["/job:ps", device]),
) as session:
    while not options.until.exists():
        session.run(update.op)
        now, told = session.run([step, values])
        if chief:
            print("step", int(now), "values", *(int(v) for v in told), flush=True)
        time.sleep(options.pause)
