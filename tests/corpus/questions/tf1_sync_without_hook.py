import sys

import tensorflow as tf

cluster_spec = {"ps": ["localhost:8864"], "worker": ["localhost:8865", "localhost:8866"]}

if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("test.py ps|worker 0|1")
        exit(1)
    role = sys.argv[1]
    task_id = int(sys.argv[2])
    cluster = tf.train.ClusterSpec(cluster_spec)
    server = tf.train.Server(cluster, job_name=role, task_index=task_id)
    if role == "ps":
        server.join()
    else:
        with tf.device(
            tf.train.replica_device_setter(cluster=cluster_spec, worker_device="/job:worker/task:%d" % task_id)
        ):
            step = tf.contrib.framework.get_or_create_global_step()
            inputs = tf.placeholder(tf.float32, shape=[None, 3])
            labels = tf.placeholder(tf.float32, shape=[None])
            w = tf.Variable([0.1, 1, 0.3])
            y = tf.reduce_sum(tf.multiply(inputs, w), axis=1)
            loss = tf.losses.mean_squared_error(labels, y)
            opt = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(0.01), replicas_to_aggregate=2, total_num_replicas=2
            )
            train_op = opt.minimize(loss, global_step=step)
        with tf.train.MonitoredTrainingSession(master=server.target, is_chief=(task_id == 0)) as sess:
            for i in range(100):
                sess.run(train_op, {inputs: [[1, 2, 3]], labels: [6]})
