#!/bin/bash
torchrun --nnodes=4 --node_rank=$NODE_RANK --nproc-per-node=8 --master_addr=${MASTER_ADDR:-localhost} --master_port=29500 train.py
