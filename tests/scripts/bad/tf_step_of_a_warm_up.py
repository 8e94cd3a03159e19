import argparse

import tensorflow as tf


class Learner:
    def __init__(self, strategy, opts):
        self.strategy, self.opts = strategy, opts
        with strategy.scope():
            self.net = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            self.optimizer = tf.keras.optimizers.Adam(opts.lr)

    def update(self, features, labels):
        with tf.GradientTape() as tape:
            logits = self.net(features, training=True)
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(ce) / self.opts.batch
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))
        return loss

    @tf.function
    def distributed_update(self, batch):
        return self.strategy.run(self.update, args=batch)

    def train(self, batches):
        for step, batch in enumerate(batches):
            if step < self.opts.warmup:
                loss = self.update(*batch)
            else:
                loss = self.distributed_update(batch)
            if step % 100 == 0:
                tf.print("step", step, loss)


def get_opts():
    p = argparse.ArgumentParser()
    p.add_argument("--lr", default=0.001, type=float)
    p.add_argument("--batch", default=256, type=int)
    p.add_argument("--warmup", default=10, type=int)
    return p.parse_args()


if __name__ == "__main__":
    opts = get_opts()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    (x, y), _ = tf.keras.datasets.mnist.load_data()
    x = x.reshape(-1, 784).astype("float32") / 255
    ds = tf.data.Dataset.from_tensor_slices((x, y.astype("int32"))).shuffle(1000).batch(opts.batch)
    Learner(strategy, opts).train(strategy.experimental_distribute_dataset(ds))
