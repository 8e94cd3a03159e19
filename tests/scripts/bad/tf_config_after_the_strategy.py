import argparse
import json
import os

import tensorflow as tf


def export_cluster(workers, index):
    conf = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
    os.environ.update(TF_CONFIG=json.dumps(conf))


class Experiment:
    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        export_cluster(args.workers.split(","), args.index)

    def model(self):
        m = tf.keras.Sequential([tf.keras.layers.Dense(10)])
        m.compile(loss="mse", optimizer="sgd")
        return m

    def run(self):
        with self.strategy.scope():
            model = self.model()
        x = tf.random.normal([256, 4])
        ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32)
        model.fit(ds, epochs=self.args.epochs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=str)
    parser.add_argument("--index", type=int)
    parser.add_argument("--epochs", type=int, default=2)
    Experiment(parser.parse_args()).run()
