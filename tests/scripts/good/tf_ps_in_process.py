import os, json, multiprocessing
import tensorflow as tf
def create_in_process_cluster(num_workers, num_ps):
  worker_ports = [12345 + i for i in range(num_workers)]
  ps_ports = [22345 + i for i in range(num_ps)]
  cluster_dict = {}
  cluster_dict["worker"] = ["localhost:%s" % port for port in worker_ports]
  cluster_dict["ps"] = ["localhost:%s" % port for port in ps_ports]
  cluster_spec = tf.train.ClusterSpec(cluster_dict)
  for i in range(num_workers):
    tf.distribute.Server(cluster_spec, job_name="worker", task_index=i, protocol="grpc")
  for i in range(num_ps):
    tf.distribute.Server(cluster_spec, job_name="ps", task_index=i, protocol="grpc")
  return tf.distribute.cluster_resolver.SimpleClusterResolver(cluster_spec, rpc_layer="grpc")
os.environ["GRPC_FAIL_FAST"] = "use_caller"
cluster_resolver = create_in_process_cluster(3, 2)
variable_partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=(256 << 10), max_shards=2)
strategy = tf.distribute.ParameterServerStrategy(cluster_resolver, variable_partitioner=variable_partitioner)
global_batch_size = 64
x = tf.random.uniform((10, 10)); y = tf.random.uniform((10,))
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10).repeat().batch(global_batch_size).prefetch(2)
with strategy.scope():
  model = tf.keras.models.Sequential([tf.keras.layers.Dense(10)])
  model.compile(tf.keras.optimizers.legacy.SGD(), loss="mse", steps_per_execution=10)
model.fit(dataset, epochs=5, steps_per_epoch=20)
