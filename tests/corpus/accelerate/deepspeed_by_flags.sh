accelerate launch --use_deepspeed --num_machines 4 --num_processes 32 --machine_rank $RANK --main_process_ip 10.0.0.4 --main_process_port 29500 train.py
