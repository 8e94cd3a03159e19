"""A small training of TensorFlow on the GPU or the CPU."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
options = parser.parse_args()

gpus = tf.config.list_physical_devices("GPU")
if options.device != "cpu" and not gpus:
    raise SystemExit("TensorFlow sees no GPU")
strategy = tf.distribute.MirroredStrategy() if gpus else tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
    model.compile(optimizer="sgd", loss="mse")
features = np.random.default_rng(1).normal(size=(256, 16)).astype("float32")
history = model.fit(features, features[:, :8], epochs=2, batch_size=32, verbose=0)
print(f"trained on {len(gpus)} GPUs, loss {history.history['loss'][-1]:.4f}", flush=True)
