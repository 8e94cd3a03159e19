import tensorflow as tf


class Trainer:
    def __init__(self):
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = build()
            self.loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self.optimizer = tf.keras.optimizers.Adam()

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_object(y, self.model(x, training=True))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))

    def train(self, data):
        for x, y in self.strategy.experimental_distribute_dataset(data):
            self.strategy.run(self.step, args=(x, y))


Trainer().train(load())
