import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
GLOBAL_BATCH_SIZE = 64 * strategy.num_replicas_in_sync


def dataset_fn(input_context):
    batch_size = input_context.get_per_replica_batch_size(GLOBAL_BATCH_SIZE)
    files = tf.data.Dataset.list_files("train-*", shuffle=False)
    files = files.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return files.interleave(tf.data.TFRecordDataset).repeat().batch(batch_size).prefetch(2)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam()
    loss_object = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)


def step_fn(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(loss_object(y, model(x)), global_batch_size=GLOBAL_BATCH_SIZE)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))


@tf.function
def train_steps(iterator, steps):
    for _ in tf.range(steps):
        strategy.run(step_fn, args=(next(iterator),))


iterator = iter(strategy.distribute_datasets_from_function(dataset_fn))
train_steps(iterator, 100)
