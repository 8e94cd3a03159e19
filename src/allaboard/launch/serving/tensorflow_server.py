"""Serves as the task that TF_CONFIG names, until it is ended: the loop that a program's own branch
for `ps` would hold. It runs in the user's Python, where allaboard need not be installed."""

import importlib
import os
import sys


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Not needed here, and a third of TensorFlow's start where they are installed (it loads them for Keras and
    # TensorFlow Lite).
    sys.modules.update({"jax": None, "sklearn": None})  # type: ignore[dict-item]
    tf = importlib.import_module("tensorflow")
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    )
    server.join()


if __name__ == "__main__":
    main()
