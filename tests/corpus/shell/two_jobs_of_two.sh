#!/bin/bash
# one job on each half of the GPUs
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
MASTER_PORT=29500 RANK=0 CUDA_VISIBLE_DEVICES=0 python train.py --seed 1 > a0.log 2>&1 &
MASTER_PORT=29500 RANK=1 CUDA_VISIBLE_DEVICES=1 python train.py --seed 1 > a1.log 2>&1 &
MASTER_PORT=29600 RANK=0 CUDA_VISIBLE_DEVICES=2 python train.py --seed 2 > b0.log 2>&1 &
MASTER_PORT=29600 RANK=1 CUDA_VISIBLE_DEVICES=3 python train.py --seed 2 > b1.log 2>&1 &
wait
