#!/bin/bash
torchrun --nproc-per-node 2 --master-port 29501 train.py --lr 0.1
