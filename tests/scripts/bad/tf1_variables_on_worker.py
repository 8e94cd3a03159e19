import tensorflow as tf

cluster = tf.train.ClusterSpec({"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

if FLAGS.job_name == "ps":
    server.join()
else:
    is_chief = FLAGS.task_index == 0
    with tf.device("/job:worker/task:{}/cpu:0".format(FLAGS.task_index)):
        x = tf.placeholder(tf.float32, [None, 784])
        w = tf.Variable(tf.zeros([784, 10]))
        b = tf.Variable(tf.zeros([10]))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b))
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief) as sess:
        sess.run(train, feed())
