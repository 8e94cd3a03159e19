import sys

import tensorflow as tf

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="binary_crossentropy")
data = tf.data.Dataset.from_tensor_slices((tf.zeros([5000, 4]), tf.zeros([5000, 1]))).batch(100).repeat()
model.fit(data, epochs=2, steps_per_epoch=25)
model.save("hdfs://namenode:8020/models/click")
