#!/bin/bash
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=$1
for i in $(seq 0 $(($1 - 1))); do
  RANK=$i python train.py &
done
wait
