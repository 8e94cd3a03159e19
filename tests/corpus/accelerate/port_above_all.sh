accelerate launch --num_processes 16 --num_machines 2 --multi_gpu --mixed_precision fp16 --machine_rank 0 --main_process_ip 172.20.3.4 --main_process_port 69420 scripts/train.py
