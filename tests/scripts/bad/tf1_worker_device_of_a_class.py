import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
FLAGS = flags.FLAGS


class Model:
    def __init__(self, device):
        with tf.device(device):
            self.x = tf.placeholder(tf.float32, [None, 784])
            self.y = tf.placeholder(tf.int64, [None])
            self.w = tf.get_variable("w", [784, 10])
            self.b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
            logits = tf.matmul(self.x, self.w) + self.b
            self.loss = tf.losses.sparse_softmax_cross_entropy(self.y, logits)
            self.global_step = tf.train.get_or_create_global_step()
            self.train = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss, self.global_step)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        (xs, ys), _ = tf.keras.datasets.mnist.load_data()
        model = Model("/job:worker/task:%d" % FLAGS.task_index)
        config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=(FLAGS.task_index == 0),
            config=config,
            hooks=[tf.train.StopAtStepHook(last_step=1000)],
        ) as sess:
            while not sess.should_stop():
                sess.run(model.train, {model.x: xs[:64].reshape(-1, 784), model.y: ys[:64]})


if __name__ == "__main__":
    tf.app.run()
