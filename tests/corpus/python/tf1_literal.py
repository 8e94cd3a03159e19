import sys
import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"]})
server = tf.train.Server(cluster, job_name=sys.argv[1], task_index=int(sys.argv[2]))
server.join()
