import tensorflow as tf

tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS

parameter_servers = ["pc-01:2222"]
workers = ["pc-02:2222", "pc-03:2222"]
cluster = tf.train.ClusterSpec({"ps": parameter_servers, "worker": workers})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

if FLAGS.job_name == "ps":
    server.join()
elif FLAGS.job_name == "worker":
    with tf.device(
        tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
    ):
        weights = tf.get_variable("weights", [784, 10])
        loss = build(weights)
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        init_op = tf.global_variables_initializer()
    with tf.Session(server.target) as sess:
        sess.run(init_op)
        for _ in range(1000):
            sess.run(train_op)
