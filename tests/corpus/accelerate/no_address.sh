accelerate launch --num_machines 2 --num_processes 8 --machine_rank 0 train.py
