#!/bin/bash
accelerate launch --cpu --multi_gpu --num_processes 2 train.py
