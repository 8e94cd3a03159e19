import sys

import tensorflow as tf

job, index = sys.argv[1], int(sys.argv[2])
cluster = tf.train.ClusterSpec({
    "master": ["localhost:2200"],
    "worker": ["localhost:2201", "localhost:2202", "localhost:2203"],
})
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "master":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, ps_device="/job:master")):
    w = tf.get_variable("w", shape=[10])
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer().minimize(tf.reduce_sum(w * w), global_step=step)
hooks = [tf.train.StopAtStepHook(last_step=1000)]
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0, hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
