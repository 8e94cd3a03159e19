import tensorflow as tf


class Trainer:
    def __init__(self, strategy, batch):
        self.strategy, self.batch = strategy, batch
        with strategy.scope():
            self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            self.optimizer = tf.keras.optimizers.Adam()
            self.loss_object = tf.keras.losses.MeanSquaredError(reduction="none")

    def load(self):
        x = tf.random.normal([2048, 8])
        ds = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).shuffle(2048).batch(self.batch)
        self.train_ds = self.strategy.experimental_distribute_dataset(ds)

    def step_fn(self, inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(self.loss_object(y, self.model(x)), global_batch_size=self.batch)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    @tf.function
    def train_epoch(self, dataset):
        total = 0.0
        for batch in dataset:
            total += self.strategy.reduce("SUM", self.strategy.run(self.step_fn, args=(batch,)), axis=None)
        return total

    def fit(self, epochs):
        self.load()
        for _ in range(epochs):
            print(float(self.train_epoch(self.train_ds)))


if __name__ == "__main__":
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    Trainer(strategy, 32 * strategy.num_replicas_in_sync).fit(3)
