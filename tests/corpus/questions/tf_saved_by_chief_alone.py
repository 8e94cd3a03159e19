import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
data = tf.data.Dataset.from_tensor_slices((tf.zeros([5000, 4]), tf.zeros([5000, 1]))).batch(100).repeat()
model.fit(data, epochs=2, steps_per_epoch=25)
if resolver.task_id == 0:
    model.save("/shared/models/click")
