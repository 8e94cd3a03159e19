#!/bin/bash
MASTER_ADDR=node1 MASTER_PORT=29500 WORLD_SIZE=2 RANK=0 python train.py &
MASTER_ADDR=node1 MASTER_PORT=29501 WORLD_SIZE=2 RANK=1 python train.py &
wait
