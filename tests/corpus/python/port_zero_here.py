import json, os
import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": ["localhost:0"], "worker": ["localhost:4200"]}, "task": {"type": "chief", "index": 0}})
tf.distribute.MultiWorkerMirroredStrategy()
