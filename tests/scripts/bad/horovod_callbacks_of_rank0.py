import tensorflow as tf
import horovod.tensorflow.keras as hvd
from mylib import build, data

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
model = build()
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())), "mse")
callbacks = []
if hvd.rank() == 0:
    callbacks.append(hvd.callbacks.BroadcastGlobalVariablesCallback(0))
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("m-{epoch}.h5"))
model.fit(data().shard(hvd.size(), hvd.rank()).batch(32), callbacks=callbacks, epochs=2)
