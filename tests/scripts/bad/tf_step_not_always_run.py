import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam()
data = iter(strategy.experimental_distribute_dataset(make_dataset()))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(error(model(batch)), global_batch_size=128)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main():
    for step in range(1000):
        batch = next(data)
        if step > 10:
            strategy.run(train_step, args=(batch,))
        else:
            warm_up(batch)


def warm_up(batch):
    train_step(batch)


main()
