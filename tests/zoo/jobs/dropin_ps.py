"""A chief that uses the drop-in for parameter servers: says what came of it, and how long it took."""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf

import allaboard
import allaboard.tensorflow

began = time.monotonic()
try:
    strategy = allaboard.tensorflow.ParameterServerStrategy(timeout=float(sys.argv[1]))
except allaboard.RollCallError as error:
    rules = sorted({f.rule for f in error.findings})
    print(f"RollCallError {','.join(rules)} {time.monotonic() - began:.1f}", flush=True)
    os._exit(7)
with strategy.scope():
    total = tf.Variable(40.0)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
coordinator.schedule(tf.function(lambda: total.assign_add(2.0)))
coordinator.join()
print(f"total {total.numpy():.0f} {time.monotonic() - began:.1f}", flush=True)
os._exit(0)  # TensorFlow's own end waits for servers that serve for ever
