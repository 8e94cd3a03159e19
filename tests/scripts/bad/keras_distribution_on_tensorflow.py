import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

devices = keras.distribution.list_devices()
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))

model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = np.random.rand(4096, 32).astype("float32")
y = np.random.randint(0, 10, 4096)
model.fit(x, y, batch_size=256, epochs=3)
