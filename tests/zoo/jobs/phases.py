"""Trains in several ways, one after the other, with data that takes its time, checkpoints and evaluations."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def slow_rows(steps):
    for _ in range(steps):
        time.sleep(0.02)
        yield np.ones(4, np.float32)


def custom_loop(tf, folder):
    weights = tf.Variable(tf.zeros([4]))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=weights), str(folder), max_to_keep=1)

    @tf.function
    def step(row):
        weights.assign_add(row)

    data = tf.data.Dataset.from_generator(
        lambda: slow_rows(60), output_signature=tf.TensorSpec([4], tf.float32)
    )
    for number, row in enumerate(data):
        step(row)
        if number % 30 == 0:
            manager.save()


def sessions(tf, folder):
    tf1 = tf.compat.v1
    with tf1.Graph().as_default(), tf1.Session() as session:
        weights = tf1.get_variable("w", [4], initializer=tf1.zeros_initializer())
        train = tf1.assign_add(weights, [1.0, 1.0, 1.0, 1.0])
        saver = tf1.train.Saver()
        session.run(tf1.global_variables_initializer())
        for _ in range(50):
            session.run(train)
        saver.save(session, str(folder / "model"))


def fit(keras, folder):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows, targets = np.ones((64, 4), np.float32), np.ones((64, 1), np.float32)
    model.fit(rows, targets, epochs=2, batch_size=8, validation_data=(rows, targets), verbose=0)
    model.save_weights(str(folder / "model.weights.h5"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("tensorflow", "tf_keras", "keras"))
    way = parser.parse_args().way
    folder = Path(tempfile.mkdtemp())
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    if way == "keras":
        import keras

        fit(keras, folder)
    elif way == "tf_keras":
        import tf_keras

        fit(tf_keras, folder)
    else:
        # TensorFlow loads both where they are installed, and takes half as long again to start.
        sys.modules.update(jax=None, sklearn=None)
        import tensorflow as tf

        custom_loop(tf, folder)
        sessions(tf, folder)


if __name__ == "__main__":
    main()
