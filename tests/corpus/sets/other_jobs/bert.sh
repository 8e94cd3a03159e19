#!/bin/bash
export RANK=0 WORLD_SIZE=4 MASTER_ADDR=node0 MASTER_PORT=29500
python bert.py
