import horovod.tensorflow as hvd
import tensorflow as tf

from bert_model import create_model, input_fn

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())

features, labels = input_fn("train.tfrecord", shard=hvd.rank(), num_shards=hvd.size())
loss = create_model(features, labels)
global_step = tf.train.get_or_create_global_step()

optimizer = tf.train.AdamOptimizer(2e-5 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer)
tvars = tf.trainable_variables()
grads = [g for g, _ in optimizer.compute_gradients(loss, tvars)]
grads, _ = tf.clip_by_global_norm(grads, clip_norm=1.0)
train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)

hooks = [
    hvd.BroadcastGlobalVariablesHook(0),
    tf.train.StopAtStepHook(last_step=100000 // hvd.size()),
]
checkpoint_dir = "ckpt" if hvd.rank() == 0 else None
with tf.train.MonitoredTrainingSession(checkpoint_dir=checkpoint_dir, config=config, hooks=hooks) as sess:
    while not sess.should_stop():
        sess.run(train_op)
