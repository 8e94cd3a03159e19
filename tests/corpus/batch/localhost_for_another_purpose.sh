#!/bin/bash
redis=${REDIS:-localhost}
torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint="$head:29400" train.py --redis $redis
