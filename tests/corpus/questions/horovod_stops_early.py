import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
train = make("train").shard(hvd.size(), hvd.rank()).batch(64)
val = make("val").shard(hvd.size(), hvd.rank()).batch(64)
model = build()
opt = hvd.DistributedOptimizer(tf.optimizers.Adam(0.001 * hvd.size()))
model.compile(loss="mse", optimizer=opt, experimental_run_tf_function=False)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=3),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("m.h5"))
model.fit(train, steps_per_epoch=500 // hvd.size(), validation_data=val, epochs=50, callbacks=callbacks)
