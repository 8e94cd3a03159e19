import json, os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = int(os.environ["INDEX"])
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": index}})
