import tensorflow as tf
from mylib import build


class Job:
    def __init__(self, files):
        self.files = files
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def input_fn(self, ctx):
        return tf.data.TFRecordDataset(self.files).batch(64)

    def run(self):
        data = self.strategy.experimental_distribute_datasets_from_function(self.input_fn)
        with self.strategy.scope():
            model = build()
            model.compile("sgd", "mse")
        model.fit(data, steps_per_epoch=10)


Job(["a", "b"]).run()
