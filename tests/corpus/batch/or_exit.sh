#!/bin/bash
head=$(scontrol show hostname "$SLURM_NODELIST" | head -n1) || exit 1
torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint="$head:29400" train.py
