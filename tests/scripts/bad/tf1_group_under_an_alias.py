import argparse
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--job", choices=["ps", "worker"])
    p.add_argument("--task", type=int)
    p.add_argument("--ps", nargs="+")
    p.add_argument("--workers", nargs="+")
    return p.parse_args()


def main():
    a = parse()
    cluster = tf1.train.ClusterSpec({"ps": a.ps, "worker": a.workers})
    server = tf1.train.Server(cluster, job_name=a.job, task_index=a.task)
    if a.job == "ps":
        return server.join()
    with tf1.device(tf1.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % a.task)):
        step = tf1.train.get_or_create_global_step()
        x = tf1.random_normal([32, 8])
        w = tf1.get_variable("w", [8, 1])
        loss = tf1.reduce_mean(tf1.square(tf1.matmul(x, w)))
        opt = tf1.train.GradientDescentOptimizer(0.01)
        apply_op = opt.minimize(loss, global_step=step)
        # wait here until all of the workers are done with the step
        sync_workers = tf1.group(apply_op, name="barrier")
    config = tf1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % a.task])
    with tf1.train.MonitoredTrainingSession(
        master=server.target, is_chief=a.task == 0, config=config,
        hooks=[tf1.train.StopAtStepHook(num_steps=5000)],
    ) as sess:
        while not sess.should_stop():
            sess.run(sync_workers)


if __name__ == "__main__":
    main()
