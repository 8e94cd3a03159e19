#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_machines 2 --machine_rank "$1" --main_process_ip 10.0.0.5 --main_process_port 29500 --num_processes=4 train.py
