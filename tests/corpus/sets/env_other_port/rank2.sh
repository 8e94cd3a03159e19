#!/bin/sh
export RANK=2
export WORLD_SIZE=3
export MASTER_ADDR=node0
export MASTER_PORT=29501
exec python train.py
