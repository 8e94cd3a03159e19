import tensorflow as tf

cluster = tf.train.ClusterSpec({"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    loss = build()
    opt = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2, total_num_replicas=2)
    train = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())
with tf.device("/job:worker/task:%d/cpu:0" % FLAGS.task_index):
    batch = next_batch()
is_chief = FLAGS.task_index == 0
hooks = [opt.make_session_run_hook(is_chief)]
with tf.train.MonitoredTrainingSession(server.target, is_chief, hooks=hooks) as sess:
    while not sess.should_stop():
        sess.run(tf.group(train, batch))
