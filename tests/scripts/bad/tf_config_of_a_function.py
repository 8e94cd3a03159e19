import json
import os
import sys

NODES = ["node-a:23456", "node-b:23456"]


def tf_config(rank):
    return json.dumps({"cluster": {"workers": NODES}, "task": {"type": "workers", "index": rank}})


os.environ["TF_CONFIG"] = tf_config(int(sys.argv[1]))

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(True), metrics=["accuracy"])
(x, y), _ = tf.keras.datasets.fashion_mnist.load_data()
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
ds = tf.data.Dataset.from_tensor_slices((x / 255.0, y)).shuffle(60000).batch(64).with_options(options)
model.fit(ds, epochs=3)
