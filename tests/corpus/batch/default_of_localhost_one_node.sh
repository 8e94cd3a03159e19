#!/bin/bash
torchrun --nnodes=1 --nproc-per-node=8 --master_addr=${MASTER_ADDR:-localhost} --master_port=29500 train.py
