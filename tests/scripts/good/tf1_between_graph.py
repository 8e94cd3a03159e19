import argparse
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
FLAGS = parser.parse_args()
cluster = tf.train.ClusterSpec({"ps": ["ps0.example.com:2222"],
                                "worker": ["w0.example.com:2222", "w1.example.com:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        w = tf.get_variable("w", [10])
        loss = tf.reduce_mean(w * w)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=FLAGS.task_index == 0) as sess:
        while not sess.should_stop():
            sess.run(train)
