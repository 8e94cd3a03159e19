import tensorflow as tf
from tqdm import trange

strategy = tf.distribute.MultiWorkerMirroredStrategy()
BATCH = 16 * strategy.num_replicas_in_sync


def parse(example):
    f = tf.io.parse_single_example(
        example, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    return tf.io.decode_jpeg(f["image"], channels=3), f["label"]


files = tf.data.Dataset.list_files("gs://bucket/train-*.tfrecord", shuffle=False)
records = tf.data.TFRecordDataset(files).map(parse).shuffle(2048).repeat().batch(BATCH)
train_dist = strategy.experimental_distribute_dataset(records)

with strategy.scope():
    model = tf.keras.applications.MobileNetV2(weights=None, classes=10)
    opt = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    ce = tf.keras.losses.SparseCategoricalCrossentropy(reduction=tf.keras.losses.Reduction.NONE)


@tf.function
def train_step(data):
    def replica(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(ce(labels, model(images, training=True)), global_batch_size=BATCH)
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, args=data), axis=None)


for epoch in range(10):
    with trange(500) as bar:
        for _ in bar:
            batch = iter(train_dist).get_next()
            bar.set_postfix(loss=float(train_step(batch)))
    model.save_weights("ckpt/%d" % epoch)
