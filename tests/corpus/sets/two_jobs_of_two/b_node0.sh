#!/bin/bash
torchrun --nnodes 2 --node-rank 0 --master-addr node0 --master-port 29600 train.py
