"""A TensorFlow script that asks Slurm for its cluster, as tf.distribute offers it."""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
    port_base=29500,
    gpus_per_node=1,
    gpus_per_task=1,
    auto_set_gpu=False,  # one task a host
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
with strategy.scope():
    weights = tf.Variable(tf.zeros([16, 2]))


def replica_step(images):
    with tf.GradientTape() as tape:
        labels = tf.cast(tf.reduce_sum(images, axis=1) > 0, tf.int32)
        logits = tf.matmul(images, weights)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
    gradient = tape.gradient(loss, weights)
    context = tf.distribute.get_replica_context()
    weights.assign_sub(0.1 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
    return loss


@tf.function
def train_step(images):
    losses = strategy.run(replica_step, args=(images,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


for _ in range(20):
    train_step(tf.random.normal([8, 16]))
size = strategy.num_replicas_in_sync
print(f"rank {resolver.task_id} of {size} trained 20 steps", flush=True)
