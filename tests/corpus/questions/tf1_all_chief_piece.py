opt = tf.train.MomentumOptimizer(learning_rate=lr_placeholder, momentum=0.9)
opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=len(worker_hosts), replica_id=0, total_num_replicas=len(worker_hosts), use_locking=True)
train_op = opt.minimize(full_loss, global_step=global_step)
sync_replicas_hook = opt.make_session_run_hook(True)
init = tf.global_variables_initializer()
with training.MonitoredTrainingSession(master=server.target, is_chief=True, hooks=[sync_replicas_hook]) as sess:
    sess.run(train_op)
