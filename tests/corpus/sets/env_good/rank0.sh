#!/bin/sh
export RANK=0
export WORLD_SIZE=2
export MASTER_ADDR=node0
export MASTER_PORT=29500
exec python train.py
