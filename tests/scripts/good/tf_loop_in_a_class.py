import tensorflow as tf
from mylib import build, pairs


class Loop:
    def __init__(self, strategy, batch):
        self.strategy = strategy
        self.batch = batch
        self.data = strategy.experimental_distribute_dataset(pairs().batch(batch))
        with strategy.scope():
            self.model = build()
            self.loss = tf.keras.losses.MeanSquaredError(reduction="none")
            self.opt = tf.keras.optimizers.SGD(0.1)

    def _step(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.loss(y, self.model(x)),
                                              global_batch_size=self.batch)
        self.opt.apply_gradients(zip(tape.gradient(loss, self.model.trainable_variables),
                                     self.model.trainable_variables))
        return loss

    @tf.function
    def step(self, batch):
        losses = self.strategy.run(self._step, args=(batch,))
        return self.strategy.reduce("SUM", losses, axis=None)

    def fit(self, steps):
        batches = iter(self.data)
        for _ in range(steps):
            print(self.step(next(batches)))


Loop(tf.distribute.MirroredStrategy(), 64).fit(100)
