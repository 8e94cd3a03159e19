#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
bash -c 'RANK=0 python train.py' &
bash -c 'RANK=1 python train.py'
bash -c "torchrun --standalone --nproc-per-node 2 \
  train.py"
bash -c 'export MASTER_ADDR=127.0.0.1 MASTER_PORT=29501 WORLD_SIZE=2
  RANK=0 python train.py &
  RANK=1 python train.py; wait'
