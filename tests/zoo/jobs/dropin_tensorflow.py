"""A script that uses the drop-in as its user would: says what came of it, and how long it took."""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow loads both where they are installed, and takes half as long again to start.
sys.modules.update(jax=None, sklearn=None)
import allaboard
import allaboard.tensorflow

began = time.monotonic()
try:
    strategy = allaboard.tensorflow.MultiWorkerMirroredStrategy(timeout=float(sys.argv[1]))
except allaboard.RollCallError as error:
    rules = sorted({f.rule for f in error.findings})
    print(f"RollCallError {','.join(rules)} {time.monotonic() - began:.1f}", flush=True)
    sys.exit(7)
print(f"replicas {strategy.num_replicas_in_sync} {time.monotonic() - began:.1f}", flush=True)
