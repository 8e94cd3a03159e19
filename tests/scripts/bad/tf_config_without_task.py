import json
import os
import subprocess

import tensorflow as tf

nodes = subprocess.check_output(["scontrol", "show", "hostnames"], text=True).split()
workers = [f"{node}:2222" for node in nodes]
config = {"cluster": {"worker": workers}}
os.environ["TF_CONFIG"] = json.dumps(config)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data)
