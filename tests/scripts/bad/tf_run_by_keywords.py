from absl import app, flags
import tensorflow as tf
from tensorflow import distribute as tfd

FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 100, "")
flags.DEFINE_integer("per_worker_batch", 32, "")


def make_dataset(n):
    feats = tf.random.normal([n * 50, 16])
    target = tf.reduce_sum(feats, axis=1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices((feats, target)).repeat().batch(n)


def replica_step(model, opt, batch, n):
    x, y = batch
    with tf.GradientTape() as tape:
        err = tf.square(model(x) - y)
        loss = tf.reduce_sum(err) / n
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
    return loss


def run_training(mirrored, data, model, opt, n):
    for i in range(FLAGS.steps):
        out = mirrored.run(
            replica_step,
            kwargs={"model": model, "opt": opt, "batch": data, "n": n},
        )
        if i % 10 == 0:
            total = mirrored.reduce(tfd.ReduceOp.SUM, out, axis=None)
            print("step %d loss %.4f" % (i, total))


def main(_):
    mwms = tfd.MultiWorkerMirroredStrategy(
        communication_options=tfd.experimental.CommunicationOptions(
            implementation=tfd.experimental.CommunicationImplementation.RING
        )
    )
    n = FLAGS.per_worker_batch * mwms.num_replicas_in_sync
    dist = mwms.experimental_distribute_dataset(make_dataset(n))
    with mwms.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
        opt = tf.keras.optimizers.SGD(0.01)
    run_training(mwms, dist, model, opt, n)


if __name__ == "__main__":
    app.run(main)
