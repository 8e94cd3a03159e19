import tensorflow as tf
cluster = tf.train.ClusterSpec(
    {"ps": ["10.0.0.1"], "worker": ["10.0.0.2:2222"]})
server = tf.train.Server(cluster, job_name="ps", task_index=0)
