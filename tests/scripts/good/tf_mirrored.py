import tensorflow as tf

(x, y), _ = tf.keras.datasets.cifar10.load_data()
strategy = tf.distribute.MirroredStrategy()
print("devices:", strategy.num_replicas_in_sync)
with strategy.scope():
    model = tf.keras.applications.ResNet50(weights=None, classes=10, input_shape=(32, 32, 3))
    model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, y, batch_size=256)
