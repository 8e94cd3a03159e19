import json
import os

import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["host1:port", "host2:port", "host3:port"], "ps": ["host4:port", "host5:port"]},
    "task": {"type": "worker", "index": 1},
})

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    model.compile(loss="mse", optimizer="sgd")
model.fit(tf.data.Dataset.from_tensors(([[1.0]], [[1.0]])).repeat(100), epochs=3)
