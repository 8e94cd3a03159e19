"""A chief that trains twice, one after the other: each training begins at step 1."""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.modules.update(jax=None, sklearn=None)
import tensorflow.compat.v1 as tf

going_on = Path(sys.argv[1])
tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
for training in ("first", "second"):
    tf.reset_default_graph()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        update = tf.assign_add(step, 1)
    until = Path(f"{going_on}-{training}")
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=True, log_step_count_steps=None, stop_grace_period_secs=2
    ) as session:
        while not until.exists():
            print(training, "step", int(session.run(update)), flush=True)
            time.sleep(0.02)
