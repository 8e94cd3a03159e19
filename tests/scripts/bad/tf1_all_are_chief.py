import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("job_name", "worker", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")


def main(_):
    cluster = tf.train.ClusterSpec({"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [5])
        opt = tf.train.GradientDescentOptimizer(0.1).minimize(tf.nn.l2_loss(w), global_step=step)
    sv = tf.train.Supervisor(is_chief=True, logdir="/tmp/train", global_step=step)
    with sv.managed_session(server.target) as sess:
        while not sv.should_stop():
            sess.run(opt)


tf.app.run(main)
