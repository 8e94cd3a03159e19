import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    )
    server.join()

strategy = tf.distribute.ParameterServerStrategy(resolver)


def dataset_fn(input_context):
    batch = input_context.get_per_replica_batch_size(64)
    x = tf.random.uniform((1024, 10))
    y = tf.random.uniform((1024, 1))
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).repeat()
    data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.batch(batch).prefetch(2)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")

creator = tf.keras.utils.experimental.DatasetCreator(dataset_fn)
model.fit(creator, epochs=5)
