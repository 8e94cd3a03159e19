import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()


def load(batch_size):
    (x, y), _ = tf.keras.datasets.mnist.load_data()
    ds = tf.data.Dataset.from_tensor_slices((x / 255.0, y))
    return ds.shuffle(1000).batch(batch_size)


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam()


def train_epoch(data):
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(per_example(y, model(x)), global_batch_size=64)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))


train_data = strategy.experimental_distribute_dataset(load(64))
strategy.run(train_epoch, args=(train_data,))
