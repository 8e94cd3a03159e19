#!/bin/bash
# usage: run.sh NODE_RANK
NNODES=${NNODES:-2}
NODE_RANK=${1:-0}
MASTER_ADDR=${MASTER_ADDR:-10.0.0.1}
GPUS=$(nvidia-smi -L | wc -l)
torchrun --nnodes=$NNODES --node_rank=$NODE_RANK --nproc_per_node=$GPUS --master_addr=$MASTER_ADDR --master_port=29500 train.py "$@"
