import sys

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy() if len(sys.argv) > 1 else None
model = None
loss_object = tf.keras.losses.MeanSquaredError()


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x)) / strategy.num_replicas_in_sync
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))


for x, y in data(strategy):
    if strategy is not None:
        strategy.run(train_step, args=(x, y))
    else:
        train_step(x, y)
