"""What to do with a GPU that an instrument finds unfit."""

from __future__ import annotations

RESET_GPU = "drain the host and reset the GPU: nvidia-smi --gpu-reset -i {bus}"
"""For a GPU that does not answer, or whose memory waits for it; the rule fills in the address."""
