"""A small MultiWorkerMirroredStrategy job that trains for real, and fails as --fault says.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import json
import os
import sys
import time


def retry_later():
    time.sleep(3600)


def wait_for_flag(flag):
    while not flag:
        pass


def count_samples():
    """Compute a metric inside the strategy: many scripts do so on the chief only."""
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant([8], tf.int64), axis=None)


def fail(name):
    if name == "stuck-in-python":
        wait_for_flag([])
    elif name == "asleep":
        retry_later()
    elif name == "exception":
        raise ValueError("label 11 is out of range")
    elif name == "leaves-early":
        sys.exit(0)
    elif name == "collectives-differ":
        count_samples()


def configure(name):
    """Stage the faults of the configuration."""
    config = json.loads(os.environ["TF_CONFIG"])
    workers = config["cluster"]["worker"]
    if name == "wrong-port":
        host, _, port = workers[0].partition(":")
        workers[0] = f"{host}:{int(port) - 1000}"
    elif name == "two-tasks":
        config["task"]["index"] = 0
    elif name == "order":
        workers[0], workers[2] = workers[2], workers[0]
    elif name == "lists-ps":
        config["cluster"]["ps"] = ["127.0.0.1:20999"]
    elif name == "no-cluster":
        config = {}
    os.environ["TF_CONFIG"] = json.dumps(config)


def before_init(name):
    """Stage the faults before the strategy."""
    if name == "asleep-before-init":
        retry_later()
    elif name == "dies-before-init":
        raise FileNotFoundError("/data/train-00001.tfrecord")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=40)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    parser.add_argument("--eager", action="store_true", help="reduce the loss outside the function")
    options = parser.parse_args()
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    guilty = index == options.guilty
    if guilty or options.fault == "lists-ps":  # one template for all
        configure(options.fault)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # TensorFlow loads both where they are installed, and takes half as long again to start.
    sys.modules.update(jax=None, sklearn=None)
    import tensorflow as tf

    if guilty:
        # Not before: the import takes longer than most faults take to be found.
        mark(options.mark)
        before_init(options.fault)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.zeros([64, 2]))

    def replica_step(images, labels):
        with tf.GradientTape() as tape:
            logits = tf.matmul(images, weights)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(0.1 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
        return loss

    def reduced(losses):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def train_step(images, labels):
        losses = strategy.run(replica_step, args=(images, labels))
        return losses if options.eager else reduced(losses)

    generator = tf.random.Generator.from_seed(index)
    for step in range(1, options.steps + 1):
        if guilty and step == options.at_step and not options.eager:
            mark(options.mark)
            with strategy.scope():
                fail(options.fault)
        images = generator.normal([8, 64])
        if guilty and step == options.at_step and options.fault == "nan-loss":
            images /= 0.0  # a feature that was scaled by its own spread
        labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
        loss = train_step(images, labels)
        if guilty and step == options.at_step and options.fault == "asleep-before-reduce":
            mark(options.mark)
            retry_later()
        loss = reduced(loss) if options.eager else loss
        time.sleep(0.005)
    if index == 0:
        print(f"trained {options.steps} steps, loss {float(loss):.4f}", flush=True)


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        with open(path, "w") as file:
            file.write(str(time.time()))


if __name__ == "__main__":
    main()
