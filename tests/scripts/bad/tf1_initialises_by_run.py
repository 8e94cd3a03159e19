import sys
import tensorflow as tf

job, task = sys.argv[1], int(sys.argv[2])
cluster = tf.train.ClusterSpec({"ps": ["p0:2222"], "worker": ["w0:2222", "w1:2222", "w2:2222"]})
server = tf.train.Server(cluster, job_name=job, task_index=task)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % task)):
    w = tf.Variable(tf.zeros([10]), name="w")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w - 1)))
    init_op = tf.global_variables_initializer()
with tf.Session(server.target) as sess:
    init_op.run()
    for _ in range(100):
        train.run()
