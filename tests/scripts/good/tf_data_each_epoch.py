import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = tf.keras.optimizers.SGD()
def loss_fn(y, p):
    return tf.nn.compute_average_loss(tf.square(y - p), global_batch_size=64)
@tf.function
def train_step(batch):
    def step(b):
        x, y = b
        with tf.GradientTape() as t:
            loss = loss_fn(y, model(x))
        g = t.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
        return loss
    return strategy.run(step, args=(batch,))
for step in range(1000):
    ds = tf.data.Dataset.from_tensor_slices((xs, ys)).shuffle(1000).batch(64)
    dist = strategy.experimental_distribute_dataset(ds)
    for batch in dist:
        train_step(batch)
