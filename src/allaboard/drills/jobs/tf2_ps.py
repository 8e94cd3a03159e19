"""A small TensorFlow 2 ParameterServerStrategy job that trains for real until it is ended, or until the input
of a worker stalls, with --fault. The script has no code for servers and workers; nothing in here
uses allaboard."""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=100_000)
parser.add_argument("--pause", type=float, default=0.05)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--fault", default="")
parser.add_argument("--guilty", type=int)
parser.add_argument("--at-step", type=int, default=40)
parser.add_argument("--mark")
options = parser.parse_args()
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    table = tf.Variable(tf.random.normal([64, options.width], stddev=0.1))
    weights = tf.Variable(tf.zeros([options.width, 2]))


@tf.function
def train_step():
    images = tf.random.normal([8, 64])
    labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.nn.relu(tf.matmul(images, table)), weights)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


@tf.function
def read(path):
    return tf.io.read_file(path)


for number in range(options.rounds):
    if options.fault and number == options.at_step:
        os.mkfifo(options.mark + ".pipe")
        with open(options.mark, "w") as file:
            file.write(str(time.time()))
        coordinator.schedule(read, (tf.constant(options.mark + ".pipe"),))
    for _ in range(20):
        coordinator.schedule(train_step)
    coordinator.join()
    time.sleep(options.pause)
