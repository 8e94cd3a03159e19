#!/bin/sh
torchrun --standalone --nproc_per_node=gpu train.py "$@"
