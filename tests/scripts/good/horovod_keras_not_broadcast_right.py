import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
gpus = tf.config.list_physical_devices('GPU')
tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')
ds = data().shard(hvd.size(), hvd.rank())
model = build()
opt = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * hvd.size()))
model.compile('mse', optimizer=opt)
model.fit(ds, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
