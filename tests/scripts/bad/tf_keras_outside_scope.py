import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
ds = tf.data.Dataset.from_tensor_slices(([[1.]], [[1.]])).batch(1)
model.fit(ds)
