#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --multi_gpu --num_processes 4 src/train_bash.py --stage sft --do_train
