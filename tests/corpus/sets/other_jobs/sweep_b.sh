#!/bin/bash
torchrun --nproc-per-node 4 --master-port 29502 train.py --lr 0.2
