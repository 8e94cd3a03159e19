"""A usual evaluator of a TensorFlow job: it looks for new checkpoints forever, and is not notified when
the training is done. Nothing in here uses allaboard."""

import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import tensorflow as tf

with tempfile.TemporaryDirectory() as folder:
    for path in tf.train.checkpoints_iterator(folder, min_interval_secs=1):
        print("evaluates", path, flush=True)
