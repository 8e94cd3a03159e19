"""The evaluator of a TensorFlow job, as they are written: it looks for new checkpoints for ever, and nobody
tells it that the training is done. Nothing in here knows allaboard."""

import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

with tempfile.TemporaryDirectory() as folder:
    for path in tf.train.checkpoints_iterator(folder, min_interval_secs=1):
        print("evaluates", path, flush=True)
