"""One file per instrument whose output can be read: GPUs, adapters, NCCL's own services, debug servers."""
