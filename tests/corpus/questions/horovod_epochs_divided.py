import math

import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
epochs = int(math.ceil(12.0 / hvd.size()))
(x, y), _ = tf.keras.datasets.mnist.load_data(path="mnist-%d.npz" % hvd.rank())
model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10, activation="softmax")])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adadelta(1.0 * hvd.size()))
model.compile(loss="sparse_categorical_crossentropy", optimizer=optimizer)
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.h5"))
model.fit(x, y, batch_size=128, callbacks=callbacks, epochs=epochs, verbose=1 if hvd.rank() == 0 else 0)
