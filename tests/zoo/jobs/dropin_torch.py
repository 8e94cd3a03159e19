"""A script that uses the drop-in as its user would: says what came of it, and how long it took."""

import json
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import allaboard

began = time.monotonic()
words = json.loads(sys.argv[-1]) if len(sys.argv) > 1 else {}
if "--by-rank" in sys.argv:
    words.update(rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
seconds = words.pop("timeout", 30)
try:
    allaboard.init_process_group("gloo", timeout=timedelta(seconds=seconds), **words)
except allaboard.RollCallError as error:
    rules = sorted({f.rule for f in error.findings})
    print(f"RollCallError {','.join(rules)} {time.monotonic() - began:.1f}", flush=True)
    print(error, file=sys.stderr)
    sys.exit(7)
tensor = torch.ones(4)
dist.all_reduce(tensor)
print(f"sum {int(tensor[0])} {time.monotonic() - began:.1f}", flush=True)
dist.destroy_process_group()
