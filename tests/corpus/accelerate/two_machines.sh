accelerate launch \
  --multi_gpu --num_machines 2 --num_processes 16 --machine_rank $SLURM_NODEID \
  --main_process_ip node1 --main_process_port 29500 --mixed_precision bf16 train.py
