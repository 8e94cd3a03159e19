"""A small TensorFlow 2 ParameterServerStrategy job that trains for real until it is ended. Its script
knows nothing of servers and workers; nothing in here knows allaboard."""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=100_000)
parser.add_argument("--pause", type=float, default=0.05)
parser.add_argument("--width", type=int, default=64)
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


for _ in range(options.rounds):
    for _ in range(20):
        coordinator.schedule(train_step)
    coordinator.join()
    time.sleep(options.pause)
