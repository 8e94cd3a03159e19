accelerate launch --num_machines 2 --num_processes 8 --main_process_ip node1 train.py
