#!/bin/bash
deepspeed --num_gpus=4 finetune.py --model facebook/opt-1.3b --epochs 3
