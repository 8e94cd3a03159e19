#!/bin/bash
pdsh -w node[0-3] 'cd /work; torchrun --nnodes=4 --nproc-per-node=8 --node-rank=0 --master-addr=node0 --master-port=29500 train.py'
