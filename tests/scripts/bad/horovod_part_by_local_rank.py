import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

files = tf.data.Dataset.list_files("/data/shards/*.tfrecord", shuffle=False)
files = files.shard(hvd.size(), hvd.local_rank())
dataset = tf.data.TFRecordDataset(files).shuffle(10000).repeat().batch(128)

model = tf.keras.applications.ResNet50(weights=None)
loss_fn = tf.losses.SparseCategoricalCrossentropy()
optimizer = tf.optimizers.SGD(0.01 * hvd.size())


@tf.function
def step(images, labels, first):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    if first:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables(), root_rank=0)
    return loss


for i, (images, labels) in enumerate(dataset.take(10000 // hvd.size())):
    step(images, labels, i == 0)
