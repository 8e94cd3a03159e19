import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.flags.DEFINE_string("job_name", "", "")
tf.flags.DEFINE_integer("task_index", 0, "")
tf.flags.DEFINE_string("ps_hosts", "", "")
tf.flags.DEFINE_string("worker_hosts", "", "")
FLAGS = tf.flags.FLAGS


class Model:
    def __init__(self, device):
        with tf.device(device):
            self.x = tf.placeholder(tf.float32, [None, 784])
            self.w = tf.get_variable("w", [784, 10])
            self.loss = tf.reduce_mean(tf.matmul(self.x, self.w) ** 2)
            step = tf.train.get_or_create_global_step()
            n = len(FLAGS.worker_hosts.split(","))
            self.opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), n, n)
            update = tf.group(tf.assign_add(step, 0), name="counters")
            with tf.control_dependencies([update]):
                self.train = self.opt.minimize(self.loss, step)


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    me = "/job:worker/task:%d" % FLAGS.task_index
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return
    model = Model(tf.train.replica_device_setter(worker_device=me, cluster=cluster))
    chief = FLAGS.task_index == 0
    hooks = [model.opt.make_session_run_hook(chief), tf.train.StopAtStepHook(last_step=1000)]
    config = tf.ConfigProto(device_filters=["/job:ps", me])
    with tf.train.MonitoredTrainingSession(server.target, is_chief=chief, hooks=hooks, config=config) as sess:
        while not sess.should_stop():
            sess.run(model.train, {model.x: [[0.0] * 784]})


if __name__ == "__main__":
    tf.app.run()
