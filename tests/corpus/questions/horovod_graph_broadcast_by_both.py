import horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf

hvd.init()
loss = build_model()
opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(1e-3 * hvd.size()))
step_op = opt.minimize(loss)
sync_op = hvd.broadcast_global_variables(0)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    if hvd.rank() == 0:
        restore(session, "model")
        session.run(sync_op)
    else:
        session.run(sync_op)
    while True:
        session.run(step_op)
