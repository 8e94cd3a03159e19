import argparse
import json
import os

import tensorflow as tf


class Trainer:
    def __init__(self, strategy, model, optimizer, global_batch):
        self.strategy = strategy
        self.model = model
        self.optimizer = optimizer
        self.global_batch = global_batch
        self.loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction=tf.keras.losses.Reduction.NONE
        )
        self.train_ds = None

    def load(self):
        (x, y), _ = tf.keras.datasets.mnist.load_data()
        x = x[..., None].astype("float32") / 255.0
        ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(60000).batch(self.global_batch)
        self.train_ds = self.strategy.experimental_distribute_dataset(ds)

    def step_fn(self, inputs):
        images, labels = inputs
        with tf.GradientTape() as tape:
            logits = self.model(images, training=True)
            loss = tf.nn.compute_average_loss(
                self.loss_object(labels, logits), global_batch_size=self.global_batch
            )
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    @tf.function
    def train_epoch(self):
        per_replica = self.strategy.run(self.step_fn, args=(self.train_ds,))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)

    def fit(self, epochs):
        self.load()
        for epoch in range(epochs):
            loss = self.train_epoch()
            print("epoch", epoch, float(loss))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.layers.Flatten(), tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(10)]
        )
        optimizer = tf.keras.optimizers.Adam()
    Trainer(strategy, model, optimizer, 64 * strategy.num_replicas_in_sync).fit(args.epochs)


if __name__ == "__main__":
    main()
