import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensors(([[1.0]], [[1.0]])))
