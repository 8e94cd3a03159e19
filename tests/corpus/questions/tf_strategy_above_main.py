import argparse
import json
import os

import tensorflow as tf

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()


def train(files):
    data = tf.data.TFRecordDataset(files).batch(64)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
        model.compile(loss="mse", optimizer="sgd")
    model.fit(data, epochs=3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", type=int)
    parser.add_argument("--hosts")
    args = parser.parse_args()
    os.environ["TF_CONFIG"] = json.dumps({
        "cluster": {"worker": args.hosts.split(",")},
        "task": {"type": "worker", "index": args.index},
    })
    train(["a.tfrecord", "b.tfrecord"])
