import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    opt = tf.keras.optimizers.SGD(0.1)
    loss_object = tf.keras.losses.MeanSquaredError(reduction="none")


def step(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_object(y, model(x)))
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(([[1.0]], [[1.0]])))
for batch in data:
    strategy.run(step, args=(batch,))
