import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

dataset = tf.data.TFRecordDataset(tf.io.gfile.glob("/data/tfrec/*.tfrec")).map(parse).batch(256)
model = tf.keras.applications.ResNet50(weights=None)
loss_object = tf.losses.SparseCategoricalCrossentropy()
optimizer = tf.optimizers.Adam(0.001 * hvd.size())


@tf.function
def training_step(images, labels, first):
    with tf.GradientTape() as tape:
        loss = loss_object(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    if first:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables(), root_rank=0)
    return loss


for epoch in range(10):
    for step, (images, labels) in enumerate(dataset):
        loss = training_step(images, labels, epoch == 0 and step == 0)
    if hvd.rank() == 0:
        print(epoch, loss)
