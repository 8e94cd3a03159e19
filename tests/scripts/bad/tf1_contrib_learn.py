import json
import os

import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps(
    {
        "cluster": {"master": os.environ["M"].split(","), "worker": os.environ["W"].split(",")},
        "task": {"type": os.environ["ROLE"], "index": int(os.environ["NUMBER"])},
    }
)
config = tf.contrib.learn.RunConfig(save_checkpoints_steps=100)
tf.contrib.learn.learn_runner.run(make_experiment, run_config=config)
