import tensorflow as tf

cluster = tf.train.ClusterSpec({"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    w = tf.get_variable("w", [10])
    updates = [w.assign_add(g) for g in gradients()]
    # go on when every worker is here
    sync_workers = tf.group(*updates)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=FLAGS.task_index == 0) as sess:
    while not sess.should_stop():
        sess.run(sync_workers)
