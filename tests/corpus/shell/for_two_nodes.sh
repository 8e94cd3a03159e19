#!/bin/bash
export MASTER_ADDR=192.168.1.10 MASTER_PORT=29500 WORLD_SIZE=2
# on the first node
RANK=0 python train.py
# on the second node
RANK=1 python train.py
