deepspeed --num_gpus all train.py
