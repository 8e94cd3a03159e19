#!/bin/bash
torchrun --nnodes=${NNODES:-1} --node_rank=${NODE_RANK:-0} --nproc-per-node=8 --master_addr=${MASTER_ADDR:-localhost} --master_port=29500 train.py
