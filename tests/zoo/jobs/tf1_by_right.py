"""A TensorFlow 1 job whose tasks differ by right: nobody is to be accused.

Asynchronous, on two servers: a large embedding table, of which each step touches a few rows, beside two small
dense layers; worker 1 begins late and is slower; the chief saves for long, and evaluates for long when the
training is over.
"""

import json
import os
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)

import tensorflow.compat.v1 as tf

ROWS, WIDTH = 60_000, 32
STEPS = 900


class Slowly(tf.train.CheckpointSaverListener):
    def after_save(self, session, global_step):
        time.sleep(4)  # copies it to where it is kept


class Evaluation(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss = loss

    def end(self, session):
        begin, losses = time.monotonic(), []
        while time.monotonic() - begin < 20:
            losses.append(session.run(self.loss))
        print(f"evaluated: loss {sum(losses) / len(losses):.4f}, no accuracy", flush=True)


def main():
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    config = json.loads(os.environ["TF_CONFIG"])
    task, cluster = config["task"], tf.train.ClusterSpec(config["cluster"])
    slow = task["type"] == "worker" and task["index"] == 1
    if slow:
        time.sleep(10)  # its data is on a slower disk
    server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        server.join()
    chief = task["index"] == 0
    device = f"/job:worker/task:{task['index']}"
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        table = tf.get_variable("table", [ROWS, WIDTH])
        weights = tf.get_variable("weights", [WIDTH, 2])
        words = tf.random.uniform([64], maxval=ROWS, dtype=tf.int32)
        logits = tf.nn.embedding_lookup(table, words) @ weights
        loss = tf.losses.sparse_softmax_cross_entropy(words % 2, logits)
        update = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    proto = tf.ConfigProto(device_filters=["/job:ps", device])
    if not chief:
        missing = tf.report_uninitialized_variables(tf.global_variables())
        with tf.Session(server.target, config=proto) as session:
            while session.run(missing).size:
                time.sleep(0.2)
    hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
    if chief:
        hooks.append(Evaluation(loss))
    with tempfile.TemporaryDirectory() as folder:
        saver = tf.train.CheckpointSaverHook(folder, save_steps=400, listeners=[Slowly()])
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            hooks=hooks,
            chief_only_hooks=[saver],
            config=proto,
            log_step_count_steps=None,
            stop_grace_period_secs=2,
        ) as session:
            while not session.should_stop():
                session.run(update)
                time.sleep(0.08 if slow else 0.02)
    print(f"worker {task['index']} is done", flush=True)


if __name__ == "__main__":
    main()
