#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=1
RANK=0 python train.py --stage 1 2>&1 | tee one.log
RANK=0 python train.py --stage 2 2>&1 | tee two.log
