import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "index")
FLAGS = flags.FLAGS

cluster = tf.train.ClusterSpec({"ps": ["node06:2222"], "worker": ["node07:2223", "node08:2224"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index)):
        x = tf.placeholder(tf.float32, [None, 784])
        w = tf.Variable(tf.zeros([784, 10]))
        loss = tf.reduce_mean(tf.matmul(x, w))
        global_step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=FLAGS.task_index == 0, config=config
    ) as session:
        while not session.should_stop():
            session.run(train, feed_dict={x: batch()})
