import os

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from images import train, valid

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
resume_from_epoch = 0
if hvd.rank() == 0:
    for epoch in range(90, 0, -1):
        if os.path.exists(f"checkpoint-{epoch}.h5"):
            resume_from_epoch = epoch
            break
model = tf.keras.applications.ResNet50(weights=None)
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())), "sparse_categorical_crossentropy")
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
model.fit(train(hvd.rank(), hvd.size()), callbacks=callbacks, epochs=90, initial_epoch=resume_from_epoch)
