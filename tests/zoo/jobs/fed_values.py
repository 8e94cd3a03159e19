"""Variables of every kind are initialised with the values of a checkpoint, by a session manager as the chief
of a job has one; two of them begin with one and the same tensor."""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import tensorflow.compat.v1 as tf

from allaboard.probe.adapters._tensorflow import fed_variables as fed

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
zeros = tf.zeros([4])
made = [tf.Variable(zeros, name=name, use_resource=False) for name in "ab"]
made += [tf.Variable(zeros, name="handle", use_resource=True)]
made += [tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), use_resource=False)]
parted = tf.get_variable(
    "parts", [6, 2], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(3)
)
saver, init = tf.train.Saver(sharded=True), tf.global_variables_initializer()
with tf.Session() as session:
    session.run(init)
    every = tf.global_variables()
    wanted = [tf.fill(v.shape, tf.cast(n + 1, v.dtype.base_dtype)) for n, v in enumerate(every)]
    for value, variable in zip(session.run(wanted), every, strict=True):
        variable.load(value, session)
    prefix = saver.save(session, str(Path(sys.argv[1]) / "snapshot"))


def never(*_: object) -> None:
    raise AssertionError("the program's own start, after a restore")


manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
call = tf.train.SessionManager.prepare_session
given = {"self": manager, "master": "", "init_op": init, "init_fn": never, "saver": saver}
session_with_values = fed.prepare_with_values(call, given, prefix)
told = session_with_values.run(every)
assert len(told) == 7 and all((v == n + 1).all() for n, v in enumerate(told)), told
assert fed.prepare_with_values(call, dict(given, init_op=None), prefix) is None
print("all as they were", flush=True)
