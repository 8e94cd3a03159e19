import os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
BATCH = 32
GLOBAL_BATCH = BATCH * strategy.num_replicas_in_sync

with strategy.scope():
    dataset = tf.data.Dataset.range(1024).batch(GLOBAL_BATCH)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_object = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)


def step_fn(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        per_example = loss_object(y, model(x))
        loss = tf.nn.compute_average_loss(per_example, global_batch_size=GLOBAL_BATCH)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


@tf.function
def train_epoch(iterator):
    total = 0.0
    for _ in tf.range(10):
        losses = strategy.run(step_fn, args=(next(iterator),))
        total += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
    return total


for epoch in range(3):
    print(train_epoch(iter(dist_dataset)))
