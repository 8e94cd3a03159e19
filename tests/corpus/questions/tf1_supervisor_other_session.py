import tensorflow as tf

from vae import DataSet, build_vae

tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS


class Trainer:
    def __init__(self, cluster, server):
        self.server = server
        with tf.device(
            tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
        ):
            self.global_step = tf.train.get_or_create_global_step()
            self.x, self.loss = build_vae()
            self.train_op = tf.train.AdamOptimizer(1e-3).minimize(self.loss, global_step=self.global_step)
            self.init_op = tf.global_variables_initializer()
        self.sess = tf.Session()

    def fit(self, data, steps):
        sv = tf.train.Supervisor(
            is_chief=(FLAGS.task_index == 0),
            logdir="/tmp/vae",
            init_op=self.init_op,
            global_step=self.global_step,
        )
        with sv.prepare_or_wait_for_session(self.server.target) as sess:
            step = 0
            while not sv.should_stop() and step < steps:
                batch = data.next_batch(128)
                _, loss, step = self.sess.run(
                    [self.train_op, self.loss, self.global_step], feed_dict={self.x: batch}
                )
        sv.stop()


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        Trainer(cluster, server).fit(DataSet(), 10000)


if __name__ == "__main__":
    tf.app.run()
