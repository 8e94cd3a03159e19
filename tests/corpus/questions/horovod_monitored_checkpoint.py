import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
dataset = tf.data.TFRecordDataset("train.tfrecord").shard(hvd.size(), hvd.rank()).batch(32).repeat()
loss = build_model(dataset.make_one_shot_iterator().get_next())
step = tf.train.get_or_create_global_step()
train_op = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.001 * hvd.size())).minimize(loss, global_step=step)
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=8000000)]
with tf.train.MonitoredTrainingSession(
    config=config,
    hooks=hooks,
    save_checkpoint_secs=600,
    checkpoint_dir="/work/model",
) as session:
    while not session.should_stop():
        session.run(train_op)
