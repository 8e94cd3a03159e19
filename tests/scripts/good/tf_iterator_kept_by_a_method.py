import tensorflow as tf


class Source:
    def __init__(self, dist_ds):
        self._ds = dist_ds
        self._it = None

    def get(self):
        if self._it is None:
            self._it = iter(self._ds)
        return next(self._it)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    x = tf.random.uniform([4096, 8])
    ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(4096).repeat().batch(32)
    source = Source(strategy.experimental_distribute_dataset(ds))
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        opt = tf.keras.optimizers.SGD()

    def one(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(x) - y)) / 32
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    run = tf.function(lambda b: strategy.run(one, args=(b,)))
    for step in range(100):
        out = run(source.get())
        if step % 10 == 0:
            print(strategy.reduce("sum", out, axis=None))


main()
