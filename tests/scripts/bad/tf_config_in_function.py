import json
import os
import tensorflow as tf
from mylib import build, data

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()


def configure(index):
    os.environ["TF_CONFIG"] = json.dumps({
        "cluster": {"worker": ["node1:2222", "node2:2222"]},
        "task": {"type": "worker", "index": index},
    })


def main():
    configure(int(os.environ["NODE_INDEX"]))
    with strategy.scope():
        model = build()
        model.compile("adam", "mse")
    model.fit(data().batch(64), epochs=2)


main()
