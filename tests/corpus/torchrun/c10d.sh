#!/bin/bash
set -e
export OMP_NUM_THREADS=4
torchrun --nnodes=2 --nproc-per-node=8 --rdzv-id=job7 --rdzv-backend=c10d \
    --rdzv-endpoint=node0.cluster:29400 --max-restarts=3 train.py
