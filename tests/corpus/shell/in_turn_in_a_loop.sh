#!/bin/sh
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=4
for rank in 0 1 2 3; do
  echo "starting $rank"
  RANK=$rank LOCAL_RANK=$rank python train.py
done
