#!/bin/bash
head=$(scontrol show hostname "$SLURM_NODELIST" 2>/dev/null | head -n1 || echo 127.0.0.1)
torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint="$head:29400" train.py
