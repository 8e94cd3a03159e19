import horovod.tensorflow.keras as hvd
import tensorflow.keras as keras

hvd.init()
model = build()
model.compile(loss="mse", optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1 * hvd.size())))
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(warmup_epochs=5, verbose=1, initial_lr=0.1),
    keras.callbacks.ReduceLROnPlateau(patience=10, verbose=1),
    keras.callbacks.EarlyStopping(patience=5),
]
if hvd.rank() == 0:
    callbacks.append(keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.h5"))
model.fit(batches(hvd.rank(), hvd.size()), steps_per_epoch=1000 // hvd.size(), callbacks=callbacks, epochs=9, verbose=1 if hvd.rank() == 0 else 0)
