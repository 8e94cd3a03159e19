"""Shortens the default timeout of PyTorch's process groups to ALLABOARD_BENCH_TIMEOUT_S seconds.

A recording must end; in half an hour the framework would write the same lines.
"""

import os
from datetime import timedelta

import torch.distributed.distributed_c10d as c10d

c10d.default_pg_timeout = timedelta(seconds=float(os.environ["ALLABOARD_BENCH_TIMEOUT_S"]))
