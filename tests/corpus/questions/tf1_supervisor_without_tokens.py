import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "index")
FLAGS = flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": ["10.0.3.1:2222"], "worker": ["10.0.3.2:2222", "10.0.3.3:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
is_chief = FLAGS.task_index == 0
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
    global_step = tf.Variable(0, trainable=False)
    loss = build()
    opt = tf.train.SyncReplicasOptimizer(
        tf.train.AdamOptimizer(0.001), replicas_to_aggregate=2, total_num_replicas=2
    )
    train_op = opt.minimize(loss, global_step=global_step)
    init_op = tf.global_variables_initializer()
sv = tf.train.Supervisor(is_chief=is_chief, init_op=init_op, global_step=global_step, logdir="/tmp/t")
with sv.managed_session(server.target) as sess:
    while not sv.should_stop():
        sess.run(train_op)
