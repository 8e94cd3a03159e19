import tensorflow as tf

train = tf.data.Dataset.from_tensor_slices(list(range(100))).batch(10)
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(train)
