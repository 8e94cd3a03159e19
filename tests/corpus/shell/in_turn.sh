#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2
RANK=0 python train.py --lr 0.1 2>&1 | tee rank0.log
RANK=1 python train.py --lr 0.1 2>&1 | tee rank1.log
