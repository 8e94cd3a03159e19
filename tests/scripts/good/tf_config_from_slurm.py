import json
import os

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.SlurmClusterResolver()
config = {"cluster": resolver.cluster_spec().as_dict()}
config["task"] = {"type": "worker", "index": int(os.environ["SLURM_PROCID"])}
os.environ["TF_CONFIG"] = json.dumps(config)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data)
