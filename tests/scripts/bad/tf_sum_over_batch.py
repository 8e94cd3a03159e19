import tensorflow as tf
from tensorflow.keras.losses import BinaryCrossentropy, Reduction
from mylib import build, pairs

mirrored = tf.distribute.MirroredStrategy()
ds = mirrored.experimental_distribute_dataset(pairs().batch(128))
with mirrored.scope():
    net = build()
    bce = BinaryCrossentropy(from_logits=True, reduction=Reduction.SUM_OVER_BATCH_SIZE)
    opt = tf.keras.optimizers.Adam()


@tf.function
def train_step(inputs):
    def replica_step(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            loss = bce(y, net(x))
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss
    return mirrored.reduce("SUM", mirrored.run(replica_step, args=(inputs,)), axis=None)


for inputs in ds:
    train_step(inputs)
