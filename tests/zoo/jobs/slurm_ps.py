"""A TensorFlow 1 parameter-server job as Slurm describes it: TensorFlow itself deals the tasks out."""

import json
import os
import runpy
import sys
from collections import OrderedDict

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
    jobs=OrderedDict(ps=1, worker=2),
    port_base=29500,
    gpus_per_node=1,  # it counts tasks by them, on hosts without any too
    gpus_per_task=1,
    auto_set_gpu=False,
)
cluster = resolver.cluster_spec().as_dict()
job, index = resolver.get_task_info()  # known once the cluster is
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
sys.argv = [sys.argv[1], "--steps", "100"]
runpy.run_path(sys.argv[0], run_name="__main__")
