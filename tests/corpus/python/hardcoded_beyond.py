import os, json
import tensorflow as tf
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["192.168.1.2:2222", "192.168.1.3:2222"]},
    "task": {"type": "worker", "index": 2}
})
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = build()
model.fit(ds)
