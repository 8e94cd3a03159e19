import tensorflow as tf


class InputPipeline:
    def __init__(self, pattern, global_batch_size):
        self._pattern = pattern
        self._global_batch_size = global_batch_size

    def __call__(self, ctx):
        batch = ctx.get_per_replica_batch_size(self._global_batch_size)
        ds = tf.data.Dataset.list_files(self._pattern, shuffle=False)
        ds = ds.shard(ctx.num_input_pipelines, ctx.input_pipeline_id)
        return ds.interleave(tf.data.TFRecordDataset).shuffle(4096).repeat().batch(batch)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    n = 64 * strategy.num_replicas_in_sync
    train = strategy.distribute_datasets_from_function(InputPipeline("/data/train*", n))
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
        opt = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(iterator):
        def fn(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x)) / n
            opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

        strategy.run(fn, args=(next(iterator),))

    it = iter(train)
    for _ in range(1000):
        step(it)


if __name__ == "__main__":
    main()
