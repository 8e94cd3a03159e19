import horovod.tensorflow as hvd
import tensorflow as tf

from seq import build_loss, next_batch

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
loss = build_loss(next_batch("train", hvd.rank(), hvd.size()))
global_step = tf.train.get_or_create_global_step()
opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(1e-3 * hvd.size()))
train_op = opt.minimize(loss, global_step=global_step)
hooks = [
    hvd.BroadcastGlobalVariablesHook(0),
    tf.train.StopAtStepHook(last_step=8000000 // hvd.size()),
    tf.train.LoggingTensorHook(tensors={"step": global_step, "loss": loss}, every_n_iter=10),
]
with tf.train.MonitoredTrainingSession(
    config=config, hooks=hooks, save_checkpoint_secs=600, checkpoint_dir="work/model"
) as sess:
    while not sess.should_stop():
        sess.run(train_op)
