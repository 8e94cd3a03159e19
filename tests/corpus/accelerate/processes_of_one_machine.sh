accelerate launch --num_machines 2 --num_processes 5 --machine_rank 0 --main_process_ip node1 train.py
