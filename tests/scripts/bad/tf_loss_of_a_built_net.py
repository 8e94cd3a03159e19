import tensorflow as tf
from tensorflow.keras.losses import CategoricalCrossentropy as CE
from tensorflow.keras.optimizers import Adam


class ContrastiveTrainer:
    def __init__(self, strategy, build_fn, batch_size):
        self._strategy = strategy
        self._batch_size = batch_size
        with self._strategy.scope():
            self._net = build_fn()
            self._criterion = CE(from_logits=True)
            self._optimizer = Adam(3e-4)

    def _replica_step(self, inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            pred = self._net(x, training=True)
            loss = self._criterion(y, pred)
        grads = tape.gradient(loss, self._net.trainable_variables)
        self._optimizer.apply_gradients(zip(grads, self._net.trainable_variables))
        return loss

    @tf.function
    def train_step(self, inputs):
        loss = self._strategy.run(self._replica_step, args=(inputs,))
        return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, loss, axis=None)

    def fit(self, ds, epochs):
        ds = self._strategy.experimental_distribute_dataset(ds)
        for e in range(epochs):
            for batch in ds:
                loss = self.train_step(batch)
            tf.print("epoch", e, "loss", loss)


def net():
    return tf.keras.Sequential([tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(10)])


if __name__ == "__main__":
    st = tf.distribute.MultiWorkerMirroredStrategy()
    xs, ys = tf.random.normal([1024, 20]), tf.one_hot(tf.random.uniform([1024], 0, 10, tf.int32), 10)
    data = tf.data.Dataset.from_tensor_slices((xs, ys)).batch(64)
    ContrastiveTrainer(st, net, 64).fit(data, 2)
