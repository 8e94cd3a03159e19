#!/bin/bash
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=4
for i in $(seq 1 4); do
  RANK=$i python train.py &
done
wait
