import os

import tensorflow as tf

cluster = tf.train.ClusterSpec({"worker": os.environ["HOSTS"].split(",")})
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    cluster, task_type="worker", task_id=int(os.environ["SLURM_PROCID"]), rpc_layer="grpc"
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss=tf.keras.losses.MeanSquaredError(), optimizer="sgd")
model.fit(tf.data.Dataset.range(64).batch(8))
