import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras

gpus = jax.devices("gpu")
print("found", len(gpus))
keras.distribution.initialize(
    job_addresses="10.4.0.7:1234,10.4.0.8:1234",
    num_processes=2,
    process_id=int(os.environ["NODE_ID"]),
)
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=gpus))
model = keras.applications.EfficientNetV2B0(weights=None, classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
