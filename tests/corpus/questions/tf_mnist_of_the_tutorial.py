import json
import os

import numpy as np
import tensorflow as tf

tf_config = json.loads(os.environ["TF_CONFIG"])
num_workers = len(tf_config["cluster"]["worker"])
strategy = tf.distribute.MultiWorkerMirroredStrategy()


def mnist_dataset(batch_size):
    (x, y), _ = tf.keras.datasets.mnist.load_data()
    return tf.data.Dataset.from_tensor_slices((x / np.float32(255), y.astype(np.int64))).shuffle(60000).repeat().batch(batch_size)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile(loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), optimizer="sgd")
model.fit(mnist_dataset(64 * num_workers), epochs=3, steps_per_epoch=70)
