import tensorflow as tf

cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.experimental.ParameterServerStrategy(cluster_resolver)


def dataset_fn(context):
    batch = context.get_per_replica_batch_size(64)
    return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat().batch(batch)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", steps_per_execution=10)
if cluster_resolver.task_type == "chief":
    print("chief starts")
model.fit(tf.keras.utils.experimental.DatasetCreator(dataset_fn), epochs=5, steps_per_epoch=20)
