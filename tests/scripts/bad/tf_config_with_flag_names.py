import argparse
import json
import os

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--role")
parser.add_argument("--number", type=int)
args = parser.parse_args()
servers = os.environ["SERVERS"].split(",")
cluster = {
    "chief": servers[:1],
    "worker_list": servers[1:],
}
tf_config = {"cluster": cluster, "task": {"type": args.role, "index": args.number}}
os.environ["TF_CONFIG"] = json.dumps(tf_config)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data)
