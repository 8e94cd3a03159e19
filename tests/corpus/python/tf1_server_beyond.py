import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2222", "localhost:2223"]})
server = tf.train.Server(cluster, job_name="worker", task_index=2)
