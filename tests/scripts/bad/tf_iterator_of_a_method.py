import tensorflow as tf


class CycleTrainer:
    def __init__(self, strategy, dist_ds, model):
        self.strategy = strategy
        self.dist_ds = dist_ds
        self.model = model
        self.opt = tf.keras.optimizers.Adam()
        self.mse = tf.keras.losses.MeanSquaredError(reduction="none")

    def get_batch(self):
        return next(iter(self.dist_ds))

    def _train(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.mse(y, self.model(x)), global_batch_size=32)
        self.opt.apply_gradients(
            zip(tape.gradient(loss, self.model.trainable_weights), self.model.trainable_weights)
        )
        return loss

    def loop(self, steps=1000):
        run = tf.function(lambda b: self.strategy.run(self._train, args=(b,)))
        for step in range(steps):
            losses = run(self.get_batch())
            if step % 50 == 0:
                print(step, self.strategy.reduce("sum", losses, axis=None))


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    x = tf.random.uniform([4096, 8])
    ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(4096).repeat().batch(32)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
        trainer = CycleTrainer(strategy, strategy.experimental_distribute_dataset(ds), model)
    trainer.loop()


if __name__ == "__main__":
    main()
