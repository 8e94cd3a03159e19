import tensorflow as tf

mirrored = tf.distribute.MultiWorkerMirroredStrategy()
B = 32 * mirrored.num_replicas_in_sync


def discriminator_loss(real, fake):
    bce = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction=tf.keras.losses.Reduction.NONE)
    per_example = bce(tf.ones_like(real), real) + bce(tf.zeros_like(fake), fake)
    return tf.nn.compute_average_loss(per_example, global_batch_size=B)


with mirrored.scope():
    G = tf.keras.Sequential([tf.keras.layers.Dense(784, activation="tanh")])
    D = tf.keras.Sequential([tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(1)])
    d_opt = tf.keras.optimizers.Adam(1e-4)


def step(images):
    noise = tf.random.normal([tf.shape(images)[0], 100])
    with tf.GradientTape() as tape:
        d_loss = discriminator_loss(D(images), D(G(noise, training=True)))
    d_opt.apply_gradients(zip(tape.gradient(d_loss, D.trainable_variables), D.trainable_variables))
    return d_loss


@tf.function
def distributed_step(images):
    losses = mirrored.run(step, args=(images,))
    return mirrored.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


x = tf.random.normal([1000, 784])
ds = mirrored.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(x).batch(B))
for epoch in range(5):
    for images in ds:
        d = distributed_step(images)
