import json
import os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = build()
    opt = tf.keras.optimizers.SGD()
d = strategy.experimental_distribute_dataset(ds)
def step(x):
    with tf.GradientTape() as tape:
        per = loss_fn(model(x))
        loss = tf.reduce_mean(per)
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
for x in d:
    strategy.run(step, args=(x,))
