import tensorflow as tf

cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
if job_name == "ps":
    server.join()

with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    global_step = tf.train.get_or_create_global_step()
    opt = tf.train.AdagradOptimizer(0.01)
    opt = tf.train.SyncReplicasOptimizer(
        opt, replicas_to_aggregate=len(worker_hosts), total_num_replicas=len(worker_hosts)
    )
    train_op = opt.minimize(loss(), global_step=global_step)
    init = tf.global_variables_initializer()

sess = tf.Session(server.target)
if task_index == 0:
    sess.run(init)
while True:
    sess.run(train_op)
