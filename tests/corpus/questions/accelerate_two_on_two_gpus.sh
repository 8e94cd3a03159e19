#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --multi_gpu --mixed_precision bf16 --num_processes=2 train.py --num_processes 8
