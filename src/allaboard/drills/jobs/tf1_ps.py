"""A small TensorFlow 1 parameter-server job that trains for real, and fails as --fault says.

Tasks are numbered chief, workers, ps. The faults are in the job's own code, as in real jobs;
nothing in here uses allaboard.
"""

import argparse
import itertools
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


BEFORE = ("asleep", "dies")
"""Faults that are in the way of the Server."""


def retry_later():
    time.sleep(3600)


def before_server(name):
    if name == "asleep":
        retry_later()
    elif name == "dies":
        raise FileNotFoundError("/data/vocabulary.txt")


def read_batch():
    time.sleep(0.4)


def wait_for_vocabulary(path="/data/vocabulary.never"):
    while not os.path.exists(path):
        pass


def serve(server, fault, path):
    if fault == "returns":
        time.sleep(8)  # prepares tables, and comes to the end of its branch
        mark(path)
        return
    server.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=40)
    parser.add_argument("--mark")
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--pause", type=float, default=0.005)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    config = json.loads(os.environ["TF_CONFIG"])
    jobs, task = config["cluster"], config["task"]
    order = [(j, i) for j in ("chief", "worker", "ps") for i in range(len(jobs.get(j, ())))]
    guilty = order.index((task["type"], task["index"])) == options.guilty
    if guilty and options.fault == "other-port":
        host, _, port = jobs["ps"][0].partition(":")
        jobs["ps"][0] = f"{host}:{int(port) + 100}"
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    if guilty and options.fault in BEFORE:
        # Not before the import: it takes longer than most faults take to be found.
        mark(options.mark)
        before_server(options.fault)
    cluster = tf.train.ClusterSpec(jobs)
    if guilty and options.fault == "other-port":
        mark(options.mark)
    server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        serve(server, options.fault if guilty else "", options.mark)
        return
    train(tf, options, server, cluster, task, "chief" in jobs, options.fault if guilty else "")


def train(tf, options, server, cluster, task, has_chief, fault):
    device = f"/job:{task['type']}/task:{task['index']}"
    chief = task["type"] == "chief" or (not has_chief and task["index"] == 0)
    workers = len(cluster.as_dict().get("worker", ())) + has_chief
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        images = tf.random.normal([8, 64])
        labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
        table = tf.get_variable("table", [64, options.width])
        weights = tf.get_variable("weights", [options.width, 2])
        logits = tf.nn.relu(images @ table) @ weights
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.AdamOptimizer(1e-3)
        if options.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        update = optimizer.minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=options.steps)]
    if options.sync:
        hooks.append(optimizer.make_session_run_hook(chief))
    visible_servers = "/job:ps/task:0" if fault == "hides" else "/job:ps"
    proto = tf.ConfigProto(device_filters=[visible_servers, device])
    if fault == "hides":
        mark(options.mark)
    if not chief and not has_chief:
        missing = tf.report_uninitialized_variables(tf.global_variables())
        with tf.Session(server.target, config=proto) as session:
            while session.run(missing).size:
                time.sleep(0.2)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=chief,
        hooks=hooks,
        config=proto,
        log_step_count_steps=None,
        stop_grace_period_secs=2,
    ) as session:
        for number in itertools.count(1):
            if session.should_stop():
                break
            session.run(update)
            time.sleep(options.pause)
            if fault == "slow":
                if number == 1:
                    mark(options.mark)
                read_batch()
            elif fault == "leaves" and number == options.at_step:
                mark(options.mark)
                break  # its shard is used up
            elif fault == "spins" and number == options.at_step:
                mark(options.mark)
                wait_for_vocabulary()


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        with open(path, "w") as file:
            file.write(str(time.time()))


if __name__ == "__main__":
    main()
