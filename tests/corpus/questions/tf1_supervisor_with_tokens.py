opt = tf.train.AdamOptimizer()
num_workers = len(worker_hosts)
opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=num_workers, total_num_replicas=num_workers, name="sync_replicas")
train_op = opt.minimize(total_loss, global_step=global_step)
local_init_op = opt.local_step_init_op
if is_chief:
    local_init_op = opt.chief_init_op
ready_for_local_init_op = opt.ready_for_local_init_op
chief_queue_runner = opt.get_chief_queue_runner()
sync_init_op = opt.get_init_tokens_op()
init_op = tf.global_variables_initializer()
sv = tf.train.Supervisor(is_chief=is_chief, logdir=train_dir, init_op=init_op, local_init_op=local_init_op, ready_for_local_init_op=ready_for_local_init_op, global_step=global_step)
with sv.prepare_or_wait_for_session(server.target) as sess:
    if is_chief:
        sess.run(sync_init_op)
        sv.start_queue_runners(sess, [chief_queue_runner])
    for _ in range(100):
        sess.run(train_op)
