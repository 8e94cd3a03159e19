import json, os, sys
import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": int(sys.argv[1])}})
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensors(([[1.0]], [[1.0]])))
