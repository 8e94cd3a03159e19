import json, os
import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": ["localhost:4100"], "worker": ["localhost:4200"]}, "task": {"type": "worker", "index": 0}})
tf.distribute.MultiWorkerMirroredStrategy()
