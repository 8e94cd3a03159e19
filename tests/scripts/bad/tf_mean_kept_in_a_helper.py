import tensorflow as tf


def loss_of(labels, logits):
    values = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = tf.reduce_mean(values)
    return loss


class T:
    def __init__(self):
        self.s = tf.distribute.MultiWorkerMirroredStrategy()
        with self.s.scope():
            self.m = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            self.o = tf.keras.optimizers.SGD()

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, self.m(x))
        self.o.apply_gradients(zip(tape.gradient(loss, self.m.trainable_variables), self.m.trainable_variables))
        return loss

    @tf.function
    def train(self, batch):
        return self.s.run(self.step, args=batch)


t = T()
ds = tf.data.Dataset.from_tensor_slices((tf.ones([64, 4]), tf.zeros([64], tf.int32))).batch(32 * t.s.num_replicas_in_sync)
for b in t.s.experimental_distribute_dataset(ds):
    t.train(b)
