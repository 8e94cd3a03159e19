import json
import os
import sys
import tensorflow as tf
from mylib import build, data

os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["gpu-a:12345", "gpu-b:12345"]},
    "task": {"type": "worker", "index": int(sys.argv[1])},
})
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = build()
    model.compile(loss="mse", optimizer="sgd")
model.fit(data().batch(64 * 2), epochs=5)
