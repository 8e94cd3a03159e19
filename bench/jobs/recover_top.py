"""The job of recover.py with its framework imported at the top, as most scripts do: only what stands
there is imported before a script's workers are forked (`run --warm`)."""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import recover
import torch.distributed
import torch.distributed.nn
import torch.nn.parallel  # noqa: F401

recover.FIRST_LINE = FIRST_LINE

if __name__ == "__main__":
    recover.main()
