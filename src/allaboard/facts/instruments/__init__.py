"""What instruments read: of GPUs and adapters, of NCCL, of collectives."""
