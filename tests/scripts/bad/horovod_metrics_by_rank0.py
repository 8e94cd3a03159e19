"""Rank 0 alone evaluates, with a callback that averages the metrics over all ranks."""

import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), loss="mse")
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
]
model.fit(tf.ones((8, 2)), tf.ones((8, 2)), callbacks=callbacks)
if hvd.rank() == 0:
    print(model.evaluate(tf.ones((8, 2)), tf.ones((8, 2)), callbacks=callbacks))
