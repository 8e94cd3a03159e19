import os, json
import tensorflow as tf
tf_config = {'cluster': {'worker': ['localhost:12345', 'localhost:23456']}, 'task': {'type': 'worker', 'index': 0}}
os.environ['TF_CONFIG'] = str(tf_config)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential(); model.compile()
model.fit(d)
