#!/bin/bash
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=4
for RANK in {0..3}; do
  RANK=$RANK LOCAL_RANK=$RANK nohup python train.py > "log.$RANK" 2>&1 &
done
wait
