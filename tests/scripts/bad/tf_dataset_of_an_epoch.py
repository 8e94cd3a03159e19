import tensorflow as tf
from mylib import build, data, BATCH

strategy = tf.distribute.MirroredStrategy()
train = strategy.experimental_distribute_dataset(data().batch(BATCH))
with strategy.scope():
    model = build()
    optimizer = tf.keras.optimizers.Adam()


def train_epoch(dataset):
    for x, y in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x) - y) ** 2) / BATCH
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))


@tf.function
def run_epoch(dataset):
    strategy.run(train_epoch, args=(dataset,))


for epoch in range(3):
    run_epoch(train)
