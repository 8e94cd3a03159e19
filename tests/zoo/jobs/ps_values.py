"""Two servers with variables of every kind, which change with each step; what they are is printed. Its only
checkpoint on disk is that of its start."""

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
parser.add_argument("--pause", type=float, default=0.01)
parser.add_argument("--checkpoints")
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
    ref = tf.get_variable("ref", [8], initializer=tf.zeros_initializer(), use_resource=False)
    handle = tf.get_variable("handle", [8], initializer=tf.zeros_initializer(), use_resource=True)
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), use_resource=False)
    parts = tf.get_variable(
        "parts",
        [6, 2],
        initializer=tf.zeros_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
        use_resource=False,
    )
    changed = [v.assign_add(tf.ones_like(v)) for v in (ref, handle, count, *parts)]
    loss = tf.reduce_sum(tf.square(handle - 1e6)) * 0.0
    with tf.control_dependencies(changed):
        update = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    values = [tf.reduce_min(v) for v in (ref, handle, count, *parts)]
chief = task["index"] == 0
with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=chief,
    checkpoint_dir=options.checkpoints,
    save_checkpoint_steps=10**9,
    save_checkpoint_secs=None,
    save_summaries_steps=0,
    log_step_count_steps=None,
    stop_grace_period_secs=2,
    config=tf.ConfigProto(device_filters=["/job:ps", device]),
) as session:
    while not options.until.exists():
        _, now, told = session.run([update, step, values])
        if chief:
            print("step", int(now), "values", *(int(v) for v in told), flush=True)
        time.sleep(options.pause)
