import tensorflow as tf


class InputPipeline:
    def __init__(self, pattern, global_batch_size, is_training=True):
        self._pattern = pattern
        self._global_batch_size = global_batch_size
        self._training = is_training

    def __call__(self, ctx):
        files = tf.io.gfile.glob(self._pattern)
        ds = tf.data.Dataset.from_tensor_slices(files)
        ds = ds.shard(ctx.num_input_pipelines, ctx.input_pipeline_id)
        ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=8)
        if self._training:
            ds = ds.shuffle(4096).repeat()
        return ds.batch(self._global_batch_size, drop_remainder=True).prefetch(2)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    global_batch_size = 64 * strategy.num_replicas_in_sync
    pipeline = InputPipeline("/data/train*", global_batch_size)
    train = strategy.distribute_datasets_from_function(pipeline)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
        opt = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(iterator):
        def fn(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x)) / global_batch_size
            opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

        strategy.run(fn, args=(next(iterator),))

    it = iter(train)
    for _ in range(1000):
        step(it)


if __name__ == "__main__":
    main()
