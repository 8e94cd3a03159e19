import tensorflow as tf
from mylib import build


def make(ctx):
    files = tf.data.Dataset.list_files("shards/*", shuffle=False)
    files = files.shard(ctx.num_input_pipelines, ctx.input_pipeline_id)
    return tf.data.TFRecordDataset(files).batch(ctx.get_per_replica_batch_size(256))


strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = strategy.distribute_datasets_from_function(lambda ctx: make(ctx))
with strategy.scope():
    model = build()
    model.compile("adam", "mse")
model.fit(data, steps_per_epoch=100, epochs=2)
