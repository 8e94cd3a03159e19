"""The TensorFlow 1 example, with an evaluator: a task outside the cluster that reads each checkpoint."""

import argparse
import json
import os
import runpy
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
EXAMPLE = Path(__file__).parents[3] / "examples/tf1_ps_digits.py"


def evaluate(folder: str, steps: int) -> None:
    import numpy as np
    import tensorflow.compat.v1 as tf

    _, test_x, _, test_y = runpy.run_path(str(EXAMPLE))["load_data"]()
    for path in tf.train.checkpoints_iterator(folder):
        reader = tf.train.load_checkpoint(path)
        w1, b1, w2, b2 = (reader.get_tensor(name) for name in ("w1", "b1", "w2", "b2"))
        right = np.argmax(np.maximum(test_x @ w1 + b1, 0.0) @ w2 + b2, axis=1) == test_y
        step = int(reader.get_tensor("global_step"))
        print(f"evaluated step {step}: accuracy {right.mean():.3f}", flush=True)
        if step >= steps:
            break


if __name__ == "__main__":
    if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "evaluator":
        parser = argparse.ArgumentParser()
        parser.add_argument("--checkpoints", required=True)
        parser.add_argument("--steps", type=int, required=True)
        given, _ = parser.parse_known_args()
        evaluate(given.checkpoints, given.steps)
    else:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
