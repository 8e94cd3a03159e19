#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
RANK_OF=0
for gpu in 4 5; do
  CUDA_VISIBLE_DEVICES=$gpu RANK=$RANK_OF python train.py &
  RANK_OF=$((RANK_OF + 1))
done
wait
