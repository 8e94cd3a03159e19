import argparse
import json
import os

import tensorflow as tf


def export_cluster(workers, index):
    os.environ.update(
        TF_CONFIG=json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
    )


class Experiment:
    def __init__(self, args):
        export_cluster(args.workers.split(","), args.index)
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def run(self):
        with self.strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            model.compile(loss="mse", optimizer="sgd")
        x = tf.random.normal([256, 4])
        model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32), epochs=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers")
    parser.add_argument("--index", type=int)
    Experiment(parser.parse_args()).run()
