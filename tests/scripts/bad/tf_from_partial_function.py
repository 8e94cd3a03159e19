import functools
import tensorflow as tf
from mylib import build


def make(context, pattern, batch_size):
    return tf.data.TFRecordDataset(tf.io.gfile.glob(pattern)).shuffle(1000).batch(batch_size)


strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = strategy.distribute_datasets_from_function(
    functools.partial(make, pattern="train-*", batch_size=32))
with strategy.scope():
    model = build()
    model.compile("adam", "mse")
model.fit(data, steps_per_epoch=100)
