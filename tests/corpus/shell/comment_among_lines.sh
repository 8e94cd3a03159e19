#!/bin/bash
torchrun --nproc-per-node 4 \
  --nnodes 2 --rdzv-backend c10d \
  # the first node of the list
  --rdzv-endpoint $HEAD:29500 \
  train.py
