import tensorflow as tf

resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    workers=["10.0.0.1:2222", "10.0.0.2:2222"],
    task_type="worker",
    task_id=1,
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver=resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data)
