import dataclasses

import tensorflow as tf


@dataclasses.dataclass
class Config:
    batch: int = 64
    epochs: int = 5
    lr: float = 1e-3


class Data:
    def __init__(self, cfg):
        self.cfg = cfg

    def train(self):
        (x, y), _ = tf.keras.datasets.cifar10.load_data()
        ds = tf.data.Dataset.from_tensor_slices((x / 255.0, y))
        return ds.shuffle(10_000).batch(self.cfg.batch).prefetch(tf.data.AUTOTUNE)


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with self.strategy.scope():
            self.model = tf.keras.applications.ResNet50(weights=None, classes=10, input_shape=(32, 32, 3))
            self.opt = tf.keras.optimizers.Adam(cfg.lr)
            self.loss = tf.keras.losses.SparseCategoricalCrossentropy(reduction="none")
        self.data = Data(cfg)

    def _step(self, x, y):
        with tf.GradientTape() as tape:
            per_example = self.loss(y, self.model(x, training=True))
            loss = tf.nn.compute_average_loss(per_example, global_batch_size=self.cfg.batch)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    @tf.function
    def _distributed_step(self, x, y):
        losses = self.strategy.run(self._step, args=(x, y))
        return self.strategy.reduce("SUM", losses, axis=None)

    def run(self):
        ds = self.data.train()
        for epoch in range(self.cfg.epochs):
            total = 0.0
            for step, (x, y) in enumerate(ds):
                total += self._distributed_step(x, y)
            print(f"epoch {epoch}: {total / (step + 1):.3f}")


if __name__ == "__main__":
    Runner(Config()).run()
