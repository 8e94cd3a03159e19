#!/bin/bash
export MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=2
RANK=1 python download.py
RANK=0 python train.py &
RANK=1 python train.py
