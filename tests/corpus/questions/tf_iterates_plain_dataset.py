import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
BATCH = 8 * strategy.num_replicas_in_sync
train_dataset = tf.data.Dataset.from_tensor_slices((tf.zeros([64, 128, 128, 3]), tf.zeros([64, 128, 128, 1]))).batch(BATCH)
train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Conv2D(1, 3, padding="same")])
    optimizer = tf.keras.optimizers.Adam()
    loss_object = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)


def train_step(inputs):
    images, masks = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = tf.reduce_sum(loss_object(masks, predictions)) / BATCH
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def distributed_train_step(inputs):
    losses = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


for epoch in range(5):
    train_iter = iter(train_dataset)
    total = 0.0
    for _ in range(8):
        total += distributed_train_step(next(train_iter))
    print(epoch, total)
