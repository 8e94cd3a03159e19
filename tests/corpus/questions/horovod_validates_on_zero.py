import horovod.keras as hvd
import keras

hvd.init()
imgs_train, msks_train, imgs_val, msks_val = load()
model = build()
opt = hvd.DistributedOptimizer(keras.optimizers.Adam(0.001 * hvd.size()))
model.compile(optimizer=opt, loss="binary_crossentropy")
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
]
if hvd.rank() == 0:
    callbacks.append(keras.callbacks.ModelCheckpoint("unet.hdf5", save_best_only=True))
    validation_data = (imgs_val, msks_val)
    verbose = 1
else:
    validation_data = None
    verbose = 0
model.fit(imgs_train, msks_train, batch_size=8, epochs=30, validation_data=validation_data, verbose=verbose, callbacks=callbacks)
