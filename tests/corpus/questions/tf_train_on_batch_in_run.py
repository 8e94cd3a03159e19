import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
BATCH = 32 * strategy.num_replicas_in_sync

(x_train, y_train), _ = tf.keras.datasets.mnist.load_data()
x_train = x_train / 255.0
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(10000).batch(BATCH)
dist_dataset = strategy.experimental_distribute_dataset(dataset)

with strategy.scope():
    model = tf.keras.models.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(28, 28)),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )


def train_step(batch):
    x, y = batch
    return model.train_on_batch(x, y)


for epoch in range(5):
    for batch in dist_dataset:
        strategy.run(train_step, args=(batch,))
    print("epoch", epoch)
