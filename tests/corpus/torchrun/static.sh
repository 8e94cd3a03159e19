#!/bin/bash
torchrun --nnodes=2 --node_rank=$1 --nproc_per_node=4 --master_addr=192.168.1.10 --master_port=29500 train.py
