"""A script that uses the drop-in as its user would: says what came of it, and how long it took."""

import os
import sys
import time

os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
import jax

import allaboard
import allaboard.jax

began = time.monotonic()
try:
    allaboard.jax.initialize(initialization_timeout=int(sys.argv[1]))
except allaboard.RollCallError as error:
    rules = sorted({f.rule for f in error.findings})
    print(f"RollCallError {','.join(rules)} {time.monotonic() - began:.1f}", flush=True)
    sys.exit(7)
print(f"processes {jax.process_count()} {time.monotonic() - began:.1f}", flush=True)
jax.distributed.shutdown()
