import tensorflow as tf

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
GLOBAL_BATCH_SIZE = 256


def train_input():
    ds = tf.data.TFRecordDataset(tf.io.gfile.glob("train-*"))
    return ds.map(parse).batch(GLOBAL_BATCH_SIZE)


train = strategy.distribute_datasets_from_function(train_input)
test = strategy.distribute_datasets_from_function(lambda ctx: test_set().batch(GLOBAL_BATCH_SIZE))
model.fit(train, validation_data=test)
