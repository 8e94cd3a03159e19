#!/bin/bash
torchrun --nnodes 2 --node-rank 1 --master-addr node0 --master-port 29500 train.py
