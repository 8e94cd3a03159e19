#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=3
for i in 0 1; do
  RANK=$i python train.py &
done
wait
