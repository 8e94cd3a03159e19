#!/bin/bash
# a blank after the first backslash
MASTER_ADDR=${MASTER_ADDR:-node0}
torchrun --nnodes 2 \ 
  --node-rank $1 --master-addr $MASTER_ADDR \
  train.py --lr 0.1
