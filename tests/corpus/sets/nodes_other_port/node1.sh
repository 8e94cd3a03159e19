#!/bin/bash
python prepare.py
torchrun --nnodes 2 --node-rank 1 --master-addr node0 --master-port 29501 train.py
