#!/bin/bash
torchrun --nnodes=2 --nproc-per-node=8 train.py
