#!/bin/bash
deepspeed /hostfile main.py --data_path rm-static --model_name_or_path opt-125m --zero_stage 3 --deepspeed --output_dir out
