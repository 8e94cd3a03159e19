import json
import os
import tensorflow as tf

# on the first machine
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["10.7.0.4:2222", "10.7.0.5:2222"]},
    "task": {"type": "worker", "index": 0}
})

# on the second machine
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["10.7.0.4:2222", "10.7.0.5:2222"]},
    "task": {"type": "worker", "index": 1}
})

strategy = tf.distribute.MultiWorkerMirroredStrategy()
